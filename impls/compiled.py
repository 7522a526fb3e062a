"""The formula of `fused` through torch.compile, with the projections of a layer.

The compiler recognizes this formula and may replace it by torch's own fused attention; the row's
`kernel` then shows that.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.inductor import compile_now, compiled, keep_buffers, missing_for_compile
from .shared.softmax import Softmax, group_rows, softmax_of_rows

COMPUTES = ("mask", "mask tensor", "softcap", "sinks")
COMPILES = True


def unavailable(device: torch.device) -> str | None:
    return missing_for_compile(device)


def context(problem: Problem) -> AbstractContextManager[object]:
    return keep_buffers(problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    softmax = softmax_of_rows(problem, inputs)
    attend = lambda q, k, v: core(q, k, v, softmax)  # noqa: E731
    call = as_call(problem, inputs, weights, attend, fills=True)
    return compile_now(problem, inputs, weights, compiled(call))


def core(q: Tensor, k: Tensor, v: Tensor, make_softmax: Callable[[], Softmax]) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V; the compiler decides which steps become one kernel."""
    softmax = make_softmax()
    s = softmax.scores(group_rows(q, k.shape[1]) @ k.mT)  # [batch, kv_heads, group * n_q, n_kv]
    o = softmax.weights(s) @ v  # [batch, kv_heads, group * n_q, d_v]
    return o.view(*q.shape[:3], v.shape[3])  # [batch, heads, n_q, d_v]
