"""Linformer (Wang et al. 2020): attention over keys and values projected along N to a fixed rank.

O(N * rank) in time and bytes. The projections are meant to be learnt. Here they are as the paper
initializes them (normal, variance 1 / rank, a fixed seed), one for keys and one for values, shared
by all heads: the error is that of an untrained model, and large at any rank. They are made before
the call, like weights, so the peak does not include them.
"""

import torch
from torch import Tensor

from ._masked_softmax import group_rows, masked_softmax
from .backend import TORCH_DTYPE, Call, Inputs, Weights
from .layer import as_call
from .problem import Problem

EXACTNESS = "approximate"
PLAIN_OPERATIONS = True
VARIANTS = ("64", "128", "512")
DEFAULT_RANK = 256
SEED = 20200608  # of the projections, independent of the inputs' seed


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    if problem.causal:
        return "not for causal problems: a projected key is a mixture of all keys, later ones too"
    if problem.mask != "none":
        return "not under a mask: a projected key is a mixture of all keys"
    return None


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    rank = int(variant or DEFAULT_RANK)
    e, f = projections(rank, problem, inputs.query.device)  # [rank, n_kv] each

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """softmax(Q (E K)^T / sqrt(d_k)) F V"""
        k, v = e @ k, f @ v  # [batch, kv_heads, rank, d_k], [batch, kv_heads, rank, d_v]
        p = masked_softmax(group_rows(q, problem) @ k.mT, None, problem.scale)
        o = p @ v  # [batch, kv_heads, group * n_q, d_v]
        return o.view(*q.shape[:3], problem.d_v)  # [batch, heads, n_q, d_v]

    call = as_call(problem, inputs, weights, attend)
    call.facts = {"rank": rank}  # type: ignore[attr-defined]
    return call


def projections(rank: int, problem: Problem, device: torch.device) -> tuple[Tensor, Tensor]:
    """[rank, kv_seq_len] each. Drawn on the CPU in fp32: equal on every device."""
    generator, dtype = torch.Generator().manual_seed(SEED), TORCH_DTYPE[problem.dtype]

    def projection() -> Tensor:
        if device.type == "meta":
            return torch.empty(rank, problem.kv_seq_len, dtype=dtype, device=device)
        drawn = torch.randn(rank, problem.kv_seq_len, generator=generator)
        return drawn.mul_(rank**-0.5).to(device, dtype)

    return projection(), projection()
