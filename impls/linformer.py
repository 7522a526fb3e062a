"""Linformer (Wang et al. 2020): keys and values are projected along N to a fixed rank, and
attention sees what is left of them.

O(N * rank) in time and bytes. The projections are meant to be learnt; here they are as the paper
draws them before training (normal, variance 1 / rank, a seed of their own), one for keys and one
for values, shared by all heads. So the error says what the idea does to inputs that nobody trained
it for, and it is large whatever the rank. They are made before the call, as weights are; its peak
does not hold them.
"""

import torch
from torch import Tensor

from . import fused
from .backend import TORCH_DTYPE, Call, Inputs, Weights
from .layer import as_call
from .problem import Problem

EXACTNESS = "approximate"
PLAIN_OPERATIONS = True
VARIANTS = ("64", "128", "512")
USUAL_RANK = 256
SEED = 20200608  # of the projections, whatever the inputs' seed


def why_not(problem: Problem, device: torch.device, *, variant: str) -> str | None:
    if problem.causal:
        return "not for causal problems: a projected key is a mixture of all keys, later ones too"
    return (
        "not under a mask: a projected key is a mixture of all keys"
        if problem.mask != "none"
        else None
    )


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None, *, variant: str) -> Call:
    rank = int(variant or USUAL_RANK)
    for_keys, for_values = projections(rank, problem, inputs.query.device)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return fused.core(q, for_keys @ k, for_values @ v, None, problem)

    call = as_call(problem, inputs, weights, attend)
    call.facts = {"rank": rank}  # type: ignore[attr-defined]
    return call


def projections(rank: int, problem: Problem, device: torch.device) -> tuple[Tensor, Tensor]:
    """[rank, kv_seq_len] each. Drawn on the CPU in fp32, so that they are the same everywhere."""
    shape, dtype = (rank, problem.kv_seq_len), TORCH_DTYPE[problem.dtype]
    if device.type == "meta":
        return torch.empty(shape, dtype=dtype, device=device), torch.empty(
            shape, dtype=dtype, device=device
        )
    generator = torch.Generator().manual_seed(SEED)
    drawn = [
        torch.randn(shape, generator=generator).mul_(rank**-0.5).to(device, dtype) for _ in range(2)
    ]
    return drawn[0], drawn[1]
