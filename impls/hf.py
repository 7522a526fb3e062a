"""The attention functions that Hugging Face models call, by the names that attn_implementation
takes; bare `hf` is their default, sdpa.

They are called as a model's layer calls them. A mask is made once, in `prepare`, as a model makes
one for all its layers: it is neither timed nor weighed. `hf:eager` is the function of Llama, which
most models repeat word for word.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from . import flex
from ._inductor import ahead
from .backend import TORCH_DTYPE, Call, Inputs, Weights
from .layer import Attend, as_call
from .problem import Problem
from .textbook import hidden_pairs

NEEDS = ("transformers",)
VARIANTS = ("eager", "sdpa", "flex_attention", "flash_attention_2")
# flex_attention does, and all import transformers, which takes half a GiB of address space
COMPILES = True

DEFAULT = "sdpa"
WIDEST = 256  # columns of a head that flash-attn has kernels for
MOST_SHAPES = 1 << 16  # that one process may compile flex_attention for


def unavailable(device: torch.device, *, variant: str) -> str | None:
    if variant == "flex_attention":
        return flex.unavailable(device)
    if variant != "flash_attention_2":
        return None
    if device.type != "cuda":
        return f"flash-attn needs a CUDA device; this is {device.type}"
    return (
        None
        if find_spec("flash_attn")
        else "needs flash_attn, which is not installed: pip install flash-attn"
    )


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    if variant == "flex_attention":
        return flex.why_not(problem, device)
    if variant != "flash_attention_2":
        return None
    if problem.dtype == "fp32":
        return "flash-attn takes fp16 and bf16, not fp32"
    if problem.d_k > WIDEST:
        return f"heads are {problem.d_k} wide; flash-attn has kernels for up to {WIDEST}"
    if (
        problem.causal
        and problem.causal_align == "top_left"
        and problem.seq_len != problem.kv_seq_len
    ):
        return (
            "flash-attn's triangle starts from the bottom right; this one starts from the top left"
        )
    return None


def context(problem: Problem, *, variant: str) -> AbstractContextManager[object]:
    return flex.context(problem) if variant == "flex_attention" else nullcontext()


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    call = as_call(
        problem, inputs, weights, attend_like(problem, variant or DEFAULT, inputs.query.device)
    )
    if variant != "flex_attention":
        return call
    import torch._dynamo.config

    # transformers compiles flex_attention once for a whole process: without this, the second shape
    # would be compiled for any length, and the ninth not at all, in silence.
    with torch._dynamo.config.patch(
        automatic_dynamic_shapes=False,
        recompile_limit=MOST_SHAPES,
        accumulated_recompile_limit=MOST_SHAPES,
        fail_on_recompile_limit_hit=True,
    ):
        return ahead(problem, inputs, weights, call)


def attend_like(problem: Problem, name: str, device: torch.device) -> Attend:
    function, scale = function_of(name), problem.scale
    mask, from_corner = mask_for(problem, name, device)
    layer = SimpleNamespace(  # what the functions look at of a model's layer
        num_key_value_groups=problem.heads // problem.kv_heads,
        is_causal=from_corner,
        training=problem.backward,
        layer_idx=0,
        config=SimpleNamespace(_attn_implementation=name),
    )

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        o: Tensor = function(
            layer, q, k, v, mask, scaling=scale, dropout=0.0, is_causal=from_corner
        )[0]
        return o.transpose(1, 2)  # it comes as [batch, n_q, heads, d_v]

    return attend


def function_of(name: str) -> Callable[..., Any]:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    from transformers.models.llama.modeling_llama import eager_attention_forward

    function: Callable[..., Any] = (
        eager_attention_forward if name == "eager" else ALL_ATTENTION_FUNCTIONS[name]
    )
    return function


def mask_for(problem: Problem, name: str, device: torch.device) -> tuple[Any, bool]:
    """The mask in the form that this function takes, and whether it is to draw a triangle by
    itself.
    """
    offset, n_q = max(problem.causal_offset, 0), problem.seq_len - problem.empty_rows
    if not problem.causal or offset >= problem.kv_seq_len - 1:
        return None, False
    if name == "flex_attention":
        return flex.block_mask(problem, device), False
    if name == "flash_attention_2" or (name == "sdpa" and offset == 0 and n_q > 1):
        return None, True
    hidden = hidden_pairs(problem, device, None)
    assert hidden is not None
    if name == "sdpa":
        return ~hidden[None, None], False
    dtype = TORCH_DTYPE[problem.dtype]
    return torch.zeros(1, 1, *hidden.shape, dtype=dtype, device=device).masked_fill(
        hidden, torch.finfo(dtype).min
    ), False
