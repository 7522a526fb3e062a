"""Fields of findings on many random cases."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from ...impls.backend import TORCH_DTYPE
from ...impls.problem import Dtype
from ..stats.intervals import mean_interval

ROUNDINGS = 8
"""Errors that count as rounding, in units of roundoff: scores of inputs of size 1 are about 1, and
a weight is off by as much as its score and its sum are."""


def mean_fields(name: str, values: Iterable[float]) -> dict[str, float]:
    """The mean over repeats, which share nothing, with its interval at 95 %: `name`, `name_low` and
    `name_high`.
    """
    found = mean_interval([*map(float, values)])
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def held_fields(errors: Sequence[float], tolerance: float) -> dict[str, Any]:
    """Whether a statement holds, by its error in each case: 0 where it holds exactly, NaN where it
    cannot be tried.
    """
    worst = max(errors)
    return {
        "holds": worst <= tolerance,
        "holding_ratio": sum(error <= tolerance for error in errors) / len(errors),
        "worst_error_ratio": worst if worst == worst else None,
        "case_count": len(errors),
        "tolerance_ratio": tolerance,
    }


def rounding(dtype: Dtype) -> float:
    """ROUNDINGS times 2**-p for p binary digits (Higham 2002, Accuracy and Stability, section 2.1).

    torch's `eps` is the distance of 1 from the next number, twice as much.
    """
    return ROUNDINGS * torch.finfo(TORCH_DTYPE[dtype]).eps / 2
