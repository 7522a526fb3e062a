"""Exact statements on attention, tried on random inputs in float64.

The hull: an output o lies in the convex hull of the rows of V if there are weights w >= 0 with
sum w = 1 and V^T w = o. Linear programming finds the smallest e with |V^T w - o| <= e in every
component (HiGHS, by scipy).
"""

from collections.abc import Callable, Iterator
from math import sqrt
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Generator, Tensor

from ...impls.problem import Problem
from ..rows.findings import AttentionFact

QUESTION = (
    "Are outputs in the hull of the values, do other weights fall if a score rises, is -1e9 as good"
    " as -inf?"
)
TOKENS, WIDTH = 10, 6
CASES = 40
HULL_CASES = 20  # of TOKENS rows each
ROUNDING = 1e-12
HULL_ROUNDING = 1e-6  # what HiGHS promises is 1e-7
FILL = -1e9


class Statement(NamedTuple):
    """`error`: of a random case; 0 where it holds, and otherwise how far it is from that."""

    error: Callable[[Generator], float]
    tolerance: float = ROUNDING
    cases: int = CASES


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[AttentionFact]:
    generator = Generator().manual_seed(seed)
    for name, of in STATEMENTS.items():
        errors = [of.error(generator) for _ in range(of.cases)]
        yield AttentionFact(
            statement=name,
            holds=max(errors) <= of.tolerance,
            holding_ratio=sum(error <= of.tolerance for error in errors) / of.cases,
            worst_error_ratio=max(errors),
            case_count=of.cases,
            tolerance_ratio=of.tolerance,
        )


def hull_distance(point: Tensor, corners: Tensor) -> float:
    """From a point [width] to the hull of corners [count, width], as the largest component."""
    count, width = corners.shape
    v, edge = corners.T.numpy(), np.ones((width, 1))
    found = linprog(
        np.r_[np.zeros(count), 1.0],
        A_ub=np.block([[v, -edge], [-v, -edge]]),
        b_ub=np.r_[point.numpy(), -point.numpy()],
        A_eq=np.r_[np.ones(count), 0.0][None],
        b_eq=[1.0],
    )
    if found.fun is None:
        raise RuntimeError(f"linear program: {found.message}")
    return float(found.fun)


def layer(generator: Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Inputs x, the weights of a head on them, its values and its outputs, each [token, ...]."""
    x, w_q, w_k, w_v = (
        torch.randn(rows, WIDTH, generator=generator, dtype=torch.float64)
        for rows in (TOKENS, WIDTH, WIDTH, WIDTH)
    )
    p = torch.softmax((x @ w_q) @ (x @ w_k).T / sqrt(WIDTH), -1)
    v = x @ w_v
    return x, p, v, p @ v


def output_outside_values(generator: Generator) -> float:
    _, _, v, outputs = layer(generator)
    return max(hull_distance(one, v) for one in outputs) / float(v.abs().max())


def output_outside_inputs(generator: Generator) -> float:
    x, _, _, outputs = layer(generator)
    return max(hull_distance(one, x) for one in outputs) / float(x.abs().max())


def others_rise(generator: Generator) -> float:
    """The largest rise of another weight, or fall of the own, when one score rises by 1."""
    scores = 3 * torch.randn(TOKENS, generator=generator, dtype=torch.float64)
    raised = int(torch.randint(TOKENS, (), generator=generator))
    after = scores.clone()
    after[raised] += 1
    change = torch.softmax(after, -1) - torch.softmax(scores, -1)
    change[raised] = -change[raised]
    return float(change.max().clamp_min(0))


def fill_differs(generator: Generator, *, empty: bool = False) -> float:
    """Of rows masked by -1e9 from the same by -inf, whose rows without any key are zero."""
    scores = 3 * torch.randn(TOKENS, TOKENS, generator=generator, dtype=torch.float64)
    masked = torch.rand(TOKENS, TOKENS, generator=generator) < 0.5
    masked[:, 0] = False
    if empty:
        masked[1] = True
    filled = torch.softmax(scores.masked_fill(masked, FILL), -1)
    exact = torch.softmax(scores.masked_fill(masked, -torch.inf), -1).nan_to_num(0.0)
    return float((filled - exact).abs().max())


STATEMENTS = {
    "outputs_in_hull_of_values": Statement(output_outside_values, HULL_ROUNDING, HULL_CASES),
    "outputs_in_hull_of_inputs": Statement(output_outside_inputs, HULL_ROUNDING, HULL_CASES),
    "other_weights_fall": Statement(others_rise),
    "fill_equals_infinity": Statement(fill_differs),
    "fill_equals_infinity_without_keys": Statement(
        lambda generator: fill_differs(generator, empty=True)
    ),
}
