"""Linformer (Wang et al. 2020): keys and values projected along N to a fixed rank.

O(N * rank) in time and bytes. One projection for keys and one for values, shared by all heads:

- bare, `64`, `128`, `512`, and `[rank=32]` of any rank: the paper's linear projections as it
  initializes them (normal, variance 1 / rank, a fixed seed). They are meant to be learnt.
  Untrained, they add up N values with random signs, and the result has next to nothing in common
  with attention, at any rank. They are made before the call, like weights, so the peak does not
  include them.
- `pool`, `pool64` ... `pool512`, `pool[rank=32]`: mean pooling, which the paper names in section 4
  (General projections): kernel and stride are N / rank, rounded up, and the last mean may be of
  fewer tokens. Nothing is learnt. With N <= rank no two tokens are merged, and the result is exact.
"""

import torch
from torch import Tensor

from .backend import TORCH_DTYPE, Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.softmax import Softmax, group_rows

EXACTNESS = "approximate"
VARIANTS = ("64", "128", "512", "pool", "pool64", "pool128", "pool256", "pool512")
PARAMETERS = {"rank": int}
DEFAULT_RANK = 256
SEED = 20200608  # of the projections, independent of the inputs' seed
POOL = "pool"


def why_not(
    problem: Problem, device: torch.device, *, variant: str, rank: int | None
) -> str | None:
    if rank is not None and (rank < 1 or variant not in ("", POOL)):
        return f"rank is {rank}; wanted 1 or more, and no variant with a rank of its own"
    if problem.causal:
        return "cannot be causal: each projected key mixes all keys, later ones too"
    if problem.mask != "none":
        return "cannot take a mask: each projected key mixes all keys"
    return None


def prepare(
    problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str, rank: int | None
) -> Call:
    rank = rank or int(variant.removeprefix(POOL) or DEFAULT_RANK)
    if variant.startswith(POOL):
        stride = -(-problem.kv_seq_len // rank)
        means = {"rank": -(-problem.kv_seq_len // stride), "projection": "mean pooling"}
        attend = lambda q, k, v: core(q, pooled(k, stride), pooled(v, stride), problem)  # noqa: E731
        return as_call(problem, inputs, weights, attend, facts=means)
    e, f = projections(rank, problem, inputs.query.device)  # [rank, n_kv] each
    attend = lambda q, k, v: core(q, e @ k, f @ v, problem)  # noqa: E731
    return as_call(problem, inputs, weights, attend, facts={"rank": rank})


def core(q: Tensor, k: Tensor, v: Tensor, problem: Problem) -> Tensor:
    """softmax(Q (E K)^T / sqrt(d_k)) F V, from projected k and v [batch, kv_heads, rank, width]."""
    softmax = Softmax(problem)
    # [batch, kv_heads, group * n_q, rank]
    p = softmax.weights(softmax.scores(group_rows(q, k.shape[1]) @ k.mT))
    o = p @ v  # [batch, kv_heads, group * n_q, d_v]
    return o.view(*q.shape[:3], problem.d_v)  # [batch, heads, n_q, d_v]


def pooled(x: Tensor, stride: int) -> Tensor:
    """Means of `stride` tokens each of [..., n, width]; the last may be of fewer."""
    whole = x.shape[-2] // stride * stride
    means: Tensor = x[..., :whole, :].unflatten(-2, (-1, stride)).mean(-2)
    if whole == x.shape[-2]:
        return means
    return torch.cat([means, x[..., whole:, :].mean(-2, keepdim=True)], -2)


def projections(rank: int, problem: Problem, device: torch.device) -> tuple[Tensor, Tensor]:
    """[rank, kv_seq_len] each. Drawn on the CPU in fp32: equal on every device."""
    generator, dtype = torch.Generator().manual_seed(SEED), TORCH_DTYPE[problem.dtype]

    def projection() -> Tensor:
        drawn = torch.randn(rank, problem.kv_seq_len, generator=generator)
        return drawn.mul_(rank**-0.5).to(device, dtype)

    return projection(), projection()
