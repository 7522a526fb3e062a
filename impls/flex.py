"""torch.nn.attention.flex_attention, compiled: one fused kernel that skips masked blocks.

The block mask, of the causal triangle, a window, chunks or packed sequences, is made once, in
`prepare`, as users make it once for all layers. Only attention is compiled, not the projections. A
sink needs no column of its own: with the log-sum-exp of the other scores its share of the weight is
known.
"""

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import AuxRequest, flex_attention

from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .refusals.flex import unavailable_here as unavailable
from .refusals.flex import why_not
from .shared.flex_attention import build_mask
from .shared.inductor import compile_now, compiled, keep_buffers

__all__ = ["build_mask", "context", "prepare", "unavailable", "why_not"]

MASKS = ("local", "chunked")
COMPUTES = ("lengths", "softcap", "sinks")
COMPILES = True


def context(problem: Problem) -> AbstractContextManager[object]:
    return keep_buffers(problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    mask = build_mask(problem, inputs.query.device)
    scale, grouped, cap = problem.scale, problem.kv_heads != problem.heads, problem.softcap
    sinks = inputs.more.get("sinks")

    def capped(score: Tensor, _b: Tensor, _h: Tensor, _q: Tensor, _kv: Tensor) -> Tensor:
        return cap * torch.tanh(score / cap)

    options: dict[str, Any] = {"block_mask": mask, "scale": scale, "enable_gqa": grouped}
    if cap:
        options["score_mod"] = capped

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        o = flex_attention(q, k, v, **options)
        assert isinstance(o, Tensor)  # a pair only if more outputs are requested
        return o  # [batch, heads, n_q, d_v]

    def attend_beside_sinks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        assert sinks is not None
        o, aux = flex_attention(q, k, v, return_aux=AuxRequest(lse=True), **options)
        keys_share = torch.sigmoid(aux.lse - sinks[:, None])  # of the weight, [batch, heads, n_q]
        o = o * keys_share[..., None].to(o.dtype)
        assert isinstance(o, Tensor)
        return o

    function = compiled(attend if sinks is None else attend_beside_sinks)
    return compile_now(
        problem, inputs, weights, as_call(problem, inputs, weights, function, fills=True)
    )
