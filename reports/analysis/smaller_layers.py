"""What layers cost whose heads were removed with their weights, beside the loss without them.

From the findings of the study trained_heads that measured them: of one seed per task.
"""

from dataclasses import dataclass
from math import isfinite
from typing import Any

from ...harness.stats.intervals import Interval
from .trained_heads import HeadCount

RATIOS = tuple(f"pruned_layer_time_{end}ratio" for end in ("", "low_", "high_"))
COUNTED = ("pruned_layer_peak_bytes", "pruned_layer_weight_bytes")
FIELDS = (*RATIOS, *COUNTED, "pruned_layer_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftCost:
    """Of all attention layers of a decoder with so many heads left, in one forward pass.

    `time_ratio` and the shares are of those with all heads; `peak_bytes`: above its input, of the
    layer that takes most; None if it was not counted.
    """

    left: int
    time_ms: float
    time_ratio: Interval
    peak_bytes: int | None
    peak_share: float | None
    weight_bytes: int
    weight_share: float


def costs_over_left(one: HeadCount) -> list[LeftCost]:
    """From all heads to none, of the first seed that has them; [] without."""
    for finding in one.trainings:
        lists = {name: finding.get(name) for name in FIELDS}
        if all(_are_numbers(values, name) for name, values in lists.items()):
            columns: dict[str, list[Any]] = {name: list(values) for name, values in lists.items()}  # type: ignore[arg-type]
            if len({len(values) for values in columns.values()}) == 1:
                return _costs(columns)
    return []


def _costs(columns: dict[str, list[Any]]) -> list[LeftCost]:
    peaks, weights = (columns[name] for name in COUNTED)
    heads = len(weights) - 1
    found = []
    for gone in range(heads + 1):
        value, low, high = (columns[name][gone] for name in RATIOS)
        found.append(
            LeftCost(
                left=heads - gone,
                time_ms=columns["pruned_layer_ms"][gone],
                time_ratio=Interval(value=value, low=low, high=high, units=2),
                peak_bytes=peaks[gone],
                peak_share=_share(peaks[gone], peaks[0]),
                weight_bytes=weights[gone],
                weight_share=weights[gone] / weights[0],
            )
        )
    return found


def _share(value: int | None, whole: int | None) -> float | None:
    return None if value is None or not whole else value / whole


def _are_numbers(values: Any, name: str) -> bool:
    """Positive and finite; a peak may be 0, or unknown."""
    if not isinstance(values, list) or not values:
        return False
    if name == COUNTED[0]:
        return all(value is None or (type(value) is int and value >= 0) for value in values)
    if name in COUNTED:
        return all(type(value) is int and value > 0 for value in values)
    return all(type(value) in (int, float) and isfinite(value) and value > 0 for value in values)
