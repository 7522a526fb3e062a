"""A ragged batch, one call of sdpa for each sequence: neither padding nor a mask for it."""

import torch
from torch import Tensor

from .axes.lengths import alone, sequences
from .backend import Call, Inputs, Weights
from .layer import as_call
from .problem import Problem
from .shared.sdpa_kernels import attend

COMPUTES = ("local", "strided", "lengths")


def why_not(problem: Problem, device: torch.device) -> str | None:
    return (
        None
        if problem.lengths
        else "needs lengths: sdpa computes sequences of equal length in one call"
    )


def prepare(problem: Problem, inputs: Inputs, weights: Weights | None) -> Call:
    device, batch = inputs.query.device, sequences(problem.lengths)
    cores = {one: attend(one, device) for one in set(alone(problem))}
    in_order = [cores[one] for one in alone(problem)]
    queries, keys = ([*sizes] for sizes in zip(*batch, strict=True))

    def each(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q [1, heads, all tokens, d_k] and so on; the sequences are views of it."""
        parts = zip(in_order, q.split(queries, 2), k.split(keys, 2), v.split(keys, 2), strict=True)
        return torch.cat([core(*part) for core, *part in parts], 2)

    return as_call(problem, inputs, weights, each, fills=True)
