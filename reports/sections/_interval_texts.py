"""Intervals over seeds as texts of tables, and as bounds of drawings."""

from math import inf, isnan

from ...harness.stats.intervals import Interval
from ..formatting import number_text, range_text, time_text


def share_bound(value: float) -> float | None:
    """A share's bound, where Student's t may pass 0 or 1, which no share does; None without one."""
    return None if isnan(value) else min(1.0, max(0.0, value))


def known(value: float) -> float | None:
    return None if isnan(value) else value


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def percents(one: Interval) -> str:
    """`98.9 % (98.1 to 99.7)`; "" without readings."""
    if not one.units:
        return ""
    low, high = share_bound(one.low), share_bound(one.high)
    if low is None or high is None:
        return percent(one.value)
    return f"{percent(one.value)} ({100 * low:.1f} to {100 * high:.1f})"


def with_range(one: Interval, least: float = -inf) -> str:
    """`0.12 (0.11 to 0.14)`; "" without readings. `least`: what the quantity cannot fall below."""
    if not one.units:
        return ""
    low = one.low if isnan(one.low) else max(least, one.low)
    return number_text(one.value) + range_text(low, one.high)


def times(one: Interval) -> str:
    """`14.2 ms (13.9 to 14.6 ms)`; "" without readings."""
    if not one.units:
        return ""
    bounds = range_text(one.low, one.high) and f" ({time_text(one.low)} to {time_text(one.high)})"
    return f"{time_text(one.value)}{bounds}"
