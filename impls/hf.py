"""Attention functions of Hugging Face models, by their attn_implementation names.

Bare `hf` is their default, sdpa; `hf:eager` is Llama's function, which most models repeat, Gemma
2's with a softcap and gpt-oss's with sinks. They are called as a model's layer calls them, on
tensors that lie in memory as a model's do. A mask is made once, in `prepare`, as a model makes one
for all its layers: its time and memory are not measured.

`hf:kernel[repo=owner/name]`, or `owner/name` alone, is a kernel of the Hub, as a model takes it: a
binary that is downloaded and run, so only with --allow-import. transformers takes one by itself
where flash_attention_2, 3 or 4 are asked for and their packages are not installed
(FLASH_ATTN_KERNEL_FALLBACK); here nothing is downloaded that was not named.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from .backend import TORCH_DTYPE, Attend, Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .refusals import DEFAULT, FLASH, flex_unavailable_here, hf_unavailable
from .refusals import hf_why_not as why_not
from .shared.flex_attention import block_mask
from .shared.inductor import compile_now, keep_buffers
from .shared.softmax import masked_pairs

__all__ = ["context", "prepare", "unavailable", "why_not"]

NEEDS = ("transformers",)
VARIANTS = (
    "eager",
    "sdpa",
    "flex_attention",
    "flash_attention_2",
    "flash_attention_3",
    "flash_attention_4",
    "paged|eager",
    "kernel",
)
PARAMETERS = {"repo": str}
COMPUTES = ("local", "chunked", "softcap", "sinks")  # a window of models, chunks of Llama 4
INPUT_ORDER = "model"
COMPILES = True  # flex_attention; and transformers, imported, takes half a GiB of address space

MAX_SHAPES = 1 << 16  # that one process may compile flex_attention for


def unavailable(device: torch.device, *, variant: str, repo: str | None) -> str | None:
    if variant == "flex_attention":
        return flex_unavailable_here(device)
    return hf_unavailable(device, variant=variant, repo=repo)


def context(problem: Problem, *, variant: str, repo: str | None) -> AbstractContextManager[object]:
    return keep_buffers(problem) if variant == "flex_attention" else nullcontext()


def prepare(
    problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str, repo: str | None
) -> Call:
    sinks = inputs.more.get("sinks")
    attend = attend_like(problem, repo or variant or DEFAULT, inputs.query.device, sinks)
    call = as_call(problem, inputs, weights, attend, fills=True)
    if variant != "flex_attention":
        return call
    import torch._dynamo.config

    # transformers compiles flex_attention once per process. Without these settings the second
    # shape would be compiled for any length, and the ninth silently not at all.
    with torch._dynamo.config.patch(
        automatic_dynamic_shapes=False,
        recompile_limit=MAX_SHAPES,
        accumulated_recompile_limit=MAX_SHAPES,
        fail_on_recompile_limit_hit=True,
    ):
        return compile_now(problem, inputs, weights, call)


def attend_like(
    problem: Problem, name: str, device: torch.device, sinks: Tensor | None = None
) -> Attend:
    """`sinks`, [heads], go to the function as the model's layer has them and as an argument."""
    function, scale = function_of(name, problem), problem.scale
    mask, is_causal = mask_for(problem, name, device)
    more: dict[str, Any] = {}
    if problem.softcap:
        more["softcap"] = problem.softcap
    if sinks is not None:
        more["s_aux"] = sinks
    if is_flash(name) and problem.mask == "local":
        more["sliding_window"] = problem.window + 1  # as models count it: a token and those before
    layer = SimpleNamespace(  # the attributes of a model's layer that the functions read
        num_key_value_groups=problem.heads // problem.kv_heads,
        is_causal=is_causal,
        training=problem.backward,
        layer_idx=0,
        sinks=sinks,
        config=SimpleNamespace(_attn_implementation=name),
    )

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        o: Tensor = function(
            layer, q, k, v, mask, scaling=scale, dropout=0.0, is_causal=is_causal, **more
        )[0]  # [batch, n_q, heads, d_v]
        return o.transpose(1, 2)

    return attend


def is_flash(name: str) -> bool:
    """Whether it makes causality and a window of arguments, without a mask."""
    return name in FLASH or "/" in name


def function_of(name: str, problem: Problem) -> Callable[..., Any]:
    """Downloads the kernel of a name as owner/kernel, if it is not there yet."""
    if "/" in name:
        from transformers.modeling_flash_attention_utils import lazy_import_flash_attention

        lazy_import_flash_attention(name, allow_all_kernels=True)  # --allow-import named it
    if name != "eager":
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

        return ALL_ATTENTION_FUNCTIONS[name]  # type: ignore[no-any-return]
    model = "gemma2" if problem.softcap else "gpt_oss" if problem.sinks else "llama"
    module = import_module(f"transformers.models.{model}.modeling_{model}")
    return module.eager_attention_forward  # type: ignore[no-any-return]


def mask_for(problem: Problem, name: str, device: torch.device) -> tuple[Any, bool]:
    """The mask in the form that this function takes, and the function's argument `is_causal`."""
    offset, n_q = max(problem.causal_offset, 0), problem.seq_len - problem.empty_rows
    by_rule = problem.mask != "none"
    if not by_rule and (not problem.causal or offset >= problem.kv_seq_len - 1):
        return None, False
    if name == "flex_attention":
        return block_mask(problem, device), False
    if is_flash(name):
        return None, problem.causal
    if name == "sdpa" and offset == 0 and n_q > 1 and not by_rule:
        return None, True
    masked = masked_pairs(problem, device)
    assert masked is not None
    if name == "sdpa":
        return ~masked[None, None], False
    dtype = TORCH_DTYPE[problem.dtype]
    bias = torch.zeros(1, 1, *masked.shape, dtype=dtype, device=device)
    return bias.masked_fill(masked, torch.finfo(dtype).min), False
