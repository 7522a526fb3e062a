"""torch's flex_attention, compiled: one fused kernel that skips masked blocks.

The block mask, of the causal triangle, a window, chunks or packed sequences, is made once, in
`prepare`, as users make it once for all layers. Only attention is compiled, not the projections. A
sink needs no column of its own: with the log-sum-exp of the other scores its share of the weight is
known. A variant is the kernel that torch must generate on a GPU: it raises if it cannot.
"""

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import AuxRequest, BlockMask, flex_attention

from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .refusals import flex_unavailable_here as unavailable
from .refusals import flex_why_not as why_not
from .shared.flex_attention import block_mask, document_mask
from .shared.inductor import compile_now, compiled, keep_buffers

__all__ = ["build_mask", "context", "prepare", "unavailable", "why_not"]

VARIANTS = ("triton", "flash", "decode")
BACKENDS = {"triton": "TRITON", "flash": "FLASH", "decode": "TRITON_DECODE"}
"""Torch's names of them, in kernel_options."""
COMPUTES = ("local", "chunked", "lengths", "softcap", "sinks")
COMPILES = True


def context(problem: Problem, *, variant: str) -> AbstractContextManager[object]:
    return keep_buffers(problem)


def build_mask(problem: Problem, device: torch.device, *, variant: str) -> BlockMask | None:
    return document_mask(problem, device) if problem.lengths else block_mask(problem, device)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    mask = build_mask(problem, inputs.query.device, variant=variant)
    scale, grouped, cap = problem.scale, problem.kv_heads != problem.heads, problem.softcap
    sinks = inputs.more.get("sinks")

    def capped(score: Tensor, _b: Tensor, _h: Tensor, _q: Tensor, _kv: Tensor) -> Tensor:
        return cap * torch.tanh(score / cap)

    options: dict[str, Any] = {"block_mask": mask, "scale": scale, "enable_gqa": grouped}
    options["kernel_options"] = facts = {"BACKEND": BACKENDS[variant]} if variant else {}
    if cap:
        options["score_mod"] = capped
    if sinks is not None:
        options["return_aux"] = AuxRequest(lse=True)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        found: Any = flex_attention(q, k, v, **options)
        o: Tensor = found if sinks is None else found[0]  # [batch, heads, n_q, d_v]
        if sinks is not None:  # the keys' share of the weight, [batch, heads, n_q]
            o = o * torch.sigmoid(found[1].lse - sinks[:, None])[..., None].to(o.dtype)
        return o

    call = as_call(problem, inputs, weights, compiled(attend), fills=True, facts=facts)
    return compile_now(problem, inputs, weights, call)
