"""Intervals of what is counted or ranked, at the level of all intervals (intervals.py)."""

from collections.abc import Sequence
from math import nan

from .intervals import CONFIDENCE, Interval, tail


def share_interval(count: int, of: int) -> Interval:
    """The share of `of` that are counted, at least one: Clopper and Pearson 1934, exact.

    6 of 6 are 51 % to all.
    """
    # Imported here: scipy costs 0.2 s, and most commands draw no interval.
    from scipy.special import betaincinv

    miss = (1 - CONFIDENCE) / 2
    low = float(betaincinv(count, of - count + 1, miss)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - miss)) if count < of else 1.0
    return Interval(value=count / of, low=low, high=high, units=of)


def median_bounds(values: Sequence[float]) -> tuple[float, float]:
    """Of the median, by ranks: whatever the distribution, and with values that may be infinite.

    The innermost ranks that reach the level; NaN if even the smallest and largest value do not, as
    of fewer than six.
    """
    ordered, count = sorted(values), len(values)
    reach = [rank for rank in range((count + 1) // 2) if 1 - 2 * tail(count, rank) >= CONFIDENCE]
    return (ordered[reach[-1]], ordered[-1 - reach[-1]]) if reach else (nan, nan)
