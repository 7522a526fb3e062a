"""The formula of `fused` through torch.compile, in scope "layer" with its projections.

The compiler recognizes this formula and may replace it by torch's own fused attention; the row's
`kernel` then shows that.
"""

from contextlib import AbstractContextManager

import torch
from torch import Tensor

from ._inductor import compile_now, compiled, keep_buffers, missing_for_compile
from ._masked_softmax import (
    beside_sink,
    group_rows,
    masked_group_rows,
    masked_scores,
    sink_of_group_rows,
    softmax_under_mask,
    weights_of_keys,
)
from .backend import Call, Inputs, Weights
from .layer import as_call
from .masks.tensors import materialized_mask
from .problem import ALL_MASKS, Problem

MASKS = ALL_MASKS
COMPUTES = ("softcap", "sinks")
COMPILES = True


def unavailable(device: torch.device) -> str | None:
    return missing_for_compile(device)


def context(problem: Problem) -> AbstractContextManager[object]:
    return keep_buffers(problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    matrix = materialized_mask(problem, inputs.query.device)
    sinks = inputs.more.get("sinks")

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """softmax(Q K^T / sqrt(d_k)) V; the compiler decides which steps become one kernel."""
        masked = masked_group_rows(problem, q.device, matrix)  # [group * n_q, n_kv]
        sink = sink_of_group_rows(sinks, q.shape[2], problem)
        s = group_rows(q, problem) @ k.mT  # [batch, kv_heads, group * n_q, n_kv]
        p = weights_of_keys(beside_sink(masked_scores(s, masked, problem), sink), sink)
        o = p @ v  # [batch, kv_heads, group * n_q, d_v]
        return o.view(*q.shape[:3], problem.d_v)  # [batch, heads, n_q, d_v]

    call = as_call(problem, inputs, weights, attend, fills=True)
    return compile_now(problem, inputs, weights, compiled(call))


def under_mask(problem: Problem, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Compiled anew for each call: for checks of a mask, not for speed."""

    def call(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        s = group_rows(q, problem) @ k.mT  # [batch, kv_heads, group * n_q, n_kv]
        s = s.view(*q.shape[:3], problem.kv_seq_len)
        p = softmax_under_mask(s, mask, problem)
        o = p.view(*k.shape[:2], -1, problem.kv_seq_len) @ v
        return o.view(*q.shape[:3], problem.d_v)  # [batch, heads, n_q, d_v]

    return compiled(call)(q, k, v, mask)
