"""torch.nn.attention.flex_attention, compiled: one fused kernel that skips masked blocks.

The block mask, of the causal triangle, a window or packed sequences, is made once, in `prepare`, as
users make it once for all layers. Only attention is compiled, not the projections.
"""

from contextlib import AbstractContextManager

from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from ._flex_attention import build_mask, unavailable, why_not
from ._inductor import compile_now, compiled, keep_buffers
from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem

__all__ = ["build_mask", "context", "prepare", "unavailable", "why_not"]

MASKS = ("local",)
COMPUTES = ("lengths",)
COMPILES = True


def context(problem: Problem) -> AbstractContextManager[object]:
    return keep_buffers(problem)


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    mask = build_mask(problem, inputs.query.device)
    scale, grouped = problem.scale, problem.kv_heads != problem.heads

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        o = flex_attention(q, k, v, block_mask=mask, scale=scale, enable_gqa=grouped)
        assert isinstance(o, Tensor)  # a pair only if more outputs are requested
        return o  # [batch, heads, n_q, d_v]

    return compile_now(
        problem, inputs, weights, as_call(problem, inputs, weights, compiled(attend))
    )
