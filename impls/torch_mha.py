"""torch.nn.MultiheadAttention, output only; `torch_mha:need_weights` returns weights too.

It has our weights. need_weights=True is torch's default. Without gradients and with an even number
of heads it takes its fast path, one kernel for the whole layer; the row's `kernel` is then
native_mha. `torch_mha:no_fast_path` never takes it. Users make the mask once and pass it as an
argument, so it is made in `prepare`: its time and memory are not measured.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from .backend import Call, Inputs, Weights
from .layer import in_scope
from .problem import Problem
from .shared.mask_tensors import mask_matrix, padded_keys

COMPUTES = ("padding",)
VARIANTS = ("no_fast_path", "need_weights")


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    p = problem
    if p.scope == "core":
        return "nn.MultiheadAttention is a whole layer; use scope: layer"
    if p.kv_heads != p.heads:
        return "nn.MultiheadAttention has no grouped heads"
    if p.d_k * p.heads != p.d_model or p.d_v != p.d_k:
        return (
            f"nn.MultiheadAttention has heads of d_model / heads = {p.d_model / p.heads:g} columns;"
            f" here they have {p.d_k} and {p.d_v}"
        )
    if variant == "need_weights" and p.empty_rows:
        return "with need_weights nn.MultiheadAttention gives NaN where a query sees no key"
    return None


@contextmanager
def _without_fast_path() -> Iterator[None]:
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def context(problem: Problem, *, variant: str) -> AbstractContextManager[object]:
    return _without_fast_path() if variant == "no_fast_path" else nullcontext()


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    assert weights is not None
    layer, device = layer_of(problem, weights), inputs.query.device
    settings = {
        "key_padding_mask": padded_keys(problem, device),  # [batch, kv_seq_len]
        "attn_mask": masked_pairs(problem, device),  # [seq_len, kv_seq_len]
        # The triangle from the top left: torch may use a kernel that has it built in.
        "is_causal": problem.causal and problem.causal_offset == 0,
        "need_weights": variant == "need_weights",
    }

    def attend(inputs: Inputs) -> Tensor:
        output: Tensor = layer(*inputs, **settings)[0]  # [batch, seq_len, d_model]
        return output

    return in_scope(inputs, weights, attend)


def masked_pairs(problem: Problem, device: torch.device) -> Tensor | None:
    """True where a query must not attend to a key, [seq_len, kv_seq_len].

    Includes queries that see no key: torch gives zeros for them.
    """
    triangle = replace(problem, mask="none", window=0)
    seen = mask_matrix(triangle, torch.arange(problem.seq_len, device=device))
    return None if seen is None else ~seen[0]


def layer_of(problem: Problem, weights: Weights) -> torch.nn.MultiheadAttention:
    """The module with our weights as its parameters.

    Those of q, k and v are concatenated, as it requires; gradients still reach ours.
    """
    p, w = problem, weights
    layer = torch.nn.MultiheadAttention(p.d_model, p.heads, batch_first=True, device="meta")
    layer.train(p.backward)
    with torch.set_grad_enabled(p.backward):
        concatenated = {
            "in_proj_weight": torch.cat((w.w_q, w.w_k, w.w_v)),
            "in_proj_bias": torch.cat((w.b_q, w.b_k, w.b_v)),
        }
    out = {"weight": w.w_o, "bias": w.b_o}
    for module, tensors in ((layer, concatenated), (layer.out_proj, out)):
        for name, tensor in tensors.items():
            delattr(module, name)  # a Parameter cannot be computed from others; an attribute can
            setattr(module, name, tensor)
    return layer
