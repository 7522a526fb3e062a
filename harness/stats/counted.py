"""Intervals of what is ranked, at the level of all intervals (intervals.py)."""

from collections.abc import Sequence
from math import nan

from .intervals import CONFIDENCE, tail


def median_bounds(values: Sequence[float]) -> tuple[float, float]:
    """Of the median, by ranks: whatever the distribution, and with values that may be infinite.

    The innermost ranks that reach the level; NaN if even the smallest and largest value do not, as
    of fewer than six.
    """
    ordered, count = sorted(values), len(values)
    reach = [rank for rank in range((count + 1) // 2) if 1 - 2 * tail(count, rank) >= CONFIDENCE]
    return (ordered[reach[-1]], ordered[-1 - reach[-1]]) if reach else (nan, nan)
