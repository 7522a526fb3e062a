"""Intervals over seeds, or over sequences: in cells of tables, and as lines of figures."""

from collections.abc import Mapping, Sequence
from math import inf, isnan

from ...harness.stats.intervals import Interval
from ..elements import Panel, Scale, Series
from ..quantity import Number, Quantity, Unit


def known(value: float, least: float = -inf, most: float = inf) -> float | None:
    """A bound, where Student's t may pass what the quantity cannot; None without one."""
    return None if isnan(value) else min(most, max(least, value))


def percent(share: float | None) -> Number:
    """With one digit, as accuracies have it."""
    return Number("" if share is None or isnan(share) else f"{100 * share:.1f} %")


def percents(one: Interval) -> Number:
    """`98.9 % (98.1 to 99.7)`, which ends at 0 and 100; "" without readings."""
    low, high = known(one.low, 0, 1), known(one.high, 0, 1)
    bounds = "" if low is None or high is None else f" ({100 * low:.1f} to {100 * high:.1f})"
    return Number(percent(one.value) + bounds)


def bounded(one: Interval | None, unit: Unit = "plain", least: float = -inf) -> Quantity:
    """`0.12 (0.11 to 0.14)`. `least`: what the quantity cannot fall below."""
    if one is None:
        return Quantity(None)
    return Quantity(one.value, unit, known(one.low, least), one.high)


def line(name: str, points: Mapping[float, Interval | None], *, of_shares: bool = False) -> Series:
    """Points with their intervals as bars, by x. `of_shares`: bars end at 0 and 1."""
    ends = (0, 1) if of_shares else (-inf, inf)
    values = points.values()
    return Series(
        backend=name,
        kind="measured",
        x=tuple(float(x) for x in points),
        y=tuple(None if one is None else known(one.value) for one in values),
        low=tuple(None if one is None else known(one.low, *ends) for one in values),
        high=tuple(None if one is None else known(one.high, *ends) for one in values),
    )


def panel(
    title: str,
    x_label: str,
    y_label: str,
    series: Sequence[Series],
    unit: Unit = "plain",
    x_scale: Scale = "linear",
) -> Panel:
    return Panel(
        x_label=x_label,
        y_label=y_label,
        unit=unit,
        x_scale=x_scale,
        y_scale="linear",
        title=title,
        series=tuple(series),
    )


def right_answers(
    title: str, x_label: str, series: Sequence[Series], x_scale: Scale = "linear"
) -> Panel:
    return panel(title, x_label, "right answers", series, "share", x_scale)
