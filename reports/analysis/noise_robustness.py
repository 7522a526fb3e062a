"""How accurate trained decoders are under noise on their embedded tokens, over its level.

A level is in standard deviations of the embedded tokens. Rows written before there were several
have one.
"""

from math import isfinite
from statistics import fmean

from ...harness.stats.intervals import Interval, mean_interval
from ..data.run_meta import finite_number
from .trained_heads import Finding, HeadCount


def levels_of(one: Finding) -> dict[float, float]:
    """Accuracy by level, from the lowest on, without that of no noise; {} if it is not known."""
    levels, accuracies = one.get("noise_levels_ratio"), one.get("noise_levels_accuracy_ratio")
    if levels is None and accuracies is None:
        levels, accuracies = [one.get("noise_ratio")], [one.get("noisy_accuracy_ratio")]
    if not isinstance(levels, list) or not isinstance(accuracies, list):
        return {}
    if len(levels) != len(accuracies) or not all(map(_is_number, (*levels, *accuracies))):
        return {}
    return dict(sorted(zip(map(float, levels), map(float, accuracies), strict=True)))


def accuracy_over_noise(one: HeadCount) -> dict[float, Interval]:
    """By level, 0 first, of the levels that all seeds have; {} without any."""
    found = [levels_of(training) for training in one.trainings]
    shared = set.intersection(*map(set, found)) if found else set()
    if not shared:
        return {}
    return {0.0: one.accuracy} | {
        level: mean_interval([levels[level] for levels in found], "seed")
        for level in sorted(shared)
    }


def points_lost(one: Finding) -> float | None:
    """Percentage points of accuracy that noise takes, mean over its levels; None if not known."""
    levels, accuracy = levels_of(one), finite_number(one, "accuracy_ratio")
    if not levels or accuracy is None:
        return None
    return 100 * (accuracy - fmean(levels.values()))


def mean_points_lost(one: HeadCount) -> Interval:
    """The same, mean over seeds."""
    lost = [points_lost(training) for training in one.trainings]
    return mean_interval([value for value in lost if value is not None], "seed")


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and isfinite(value)  # type: ignore[arg-type]
