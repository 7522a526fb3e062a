"""Intervals over seeds, or over sequences: as texts of tables, and as lines of figures."""

from collections.abc import Mapping, Sequence
from math import inf, isnan

from ...harness.stats.intervals import Interval
from ..elements import Panel, Series
from ..formatting import number_text, range_text, time_text


def share_bound(value: float) -> float | None:
    """A share's bound, where Student's t may pass 0 or 1, which no share does; None without one."""
    return None if isnan(value) else min(1.0, max(0.0, value))


def known(value: float) -> float | None:
    return None if isnan(value) else value


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def percents(one: Interval) -> str:
    """`98.9 % (98.1 to 99.7)`; "" without readings."""
    if not one.units:
        return ""
    low, high = share_bound(one.low), share_bound(one.high)
    if low is None or high is None:
        return percent(one.value)
    return f"{percent(one.value)} ({100 * low:.1f} to {100 * high:.1f})"


def with_range(one: Interval | None, least: float = -inf) -> str:
    """`0.12 (0.11 to 0.14)`; "" without readings. `least`: what the quantity cannot fall below."""
    if one is None or not one.units:
        return ""
    low = one.low if isnan(one.low) else max(least, one.low)
    return number_text(one.value) + range_text(low, one.high)


def times(one: Interval) -> str:
    """`14.2 ms (13.9 to 14.6 ms)`; "" without readings."""
    if not one.units:
        return ""
    bounds = range_text(one.low, one.high) and f" ({time_text(one.low)} to {time_text(one.high)})"
    return f"{time_text(one.value)}{bounds}"


def line(name: str, points: Mapping[float, Interval | None], *, of_shares: bool = False) -> Series:
    """Points with their intervals as bars, by x. `of_shares`: bars end at 0 and 1."""
    bound = share_bound if of_shares else known
    values = points.values()
    return Series(
        backend=name,
        kind="measured",
        x=tuple(float(x) for x in points),
        y=tuple(None if one is None else known(one.value) for one in values),
        low=tuple(None if one is None else bound(one.low) for one in values),
        high=tuple(None if one is None else bound(one.high) for one in values),
    )


def right_answers(
    title: str, x_label: str, series: Sequence[Series], *, over_heads: bool = False
) -> Panel:
    """The share of right answers; numbers of heads are doubled from one to the next."""
    return Panel(
        x_label=x_label,
        y_label="right answers",
        unit="share",
        x_scale="log" if over_heads else "linear",
        y_scale="linear",
        title=title,
        series=tuple(series),
    )
