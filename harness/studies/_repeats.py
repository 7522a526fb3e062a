"""Intervals as fields of findings."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import torch
from torch import Tensor

NORMAL_95 = 1.96


def mean_fields(
    name: str, values: Sequence[float] | Tensor, *, of_logs: bool = False
) -> dict[str, Any]:
    """The mean over repeats, which share nothing, with its interval at 95 %: `name`, `name_low` and
    `name_high`. `of_logs`: of positive numbers, whose geometric mean it is.
    """
    found = torch.as_tensor(values, dtype=torch.float64)
    found = found.log() if of_logs else found
    centre, reach = found.mean(), NORMAL_95 * found.std() / sqrt(len(found))
    fields = {name: centre, f"{name}_low": centre - reach, f"{name}_high": centre + reach}
    return {field: float(one.exp() if of_logs else one) for field, one in fields.items()}
