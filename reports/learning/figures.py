"""Intervals over seeds, or over sequences: in cells of tables, and figures of them."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isnan
from typing import NamedTuple

from ...harness.stats.intervals import Interval
from ..elements import Figure, Panel, Scale, Series, Table
from ..quantity import Number, Quantity, Unit


def known(value: float, least: float = -inf, most: float = inf) -> float | None:
    """A bound, where Student's t may pass what the quantity cannot; None without one."""
    return None if isnan(value) else min(most, max(least, value))


def percent(share: float | None) -> Number:
    """With one digit, as accuracies have it."""
    return Number("" if share is None or isnan(share) else f"{100 * share:.1f} %")


def shares_text(shares: Sequence[float]) -> str:
    """From the least to the most: `52 % to 61 %`, or one of them."""
    return " to ".join(dict.fromkeys(f"{100 * one:.0f} %" for one in (min(shares), max(shares))))


def percents(one: Interval, least: float = 0.0, most: float = 1.0) -> Number:
    """`98.9 % (98.1 to 99.7)`, bounds within `least` and `most`; "" without readings."""
    low, high = known(one.low, least, most), known(one.high, least, most)
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


class Axes(NamedTuple):
    """Of all panels of a figure; `unit`: of y."""

    x_label: str
    y_label: str
    unit: Unit = "plain"
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"


def right_answers(x_label: str, x_scale: Scale = "linear") -> Axes:
    return Axes(x_label, "right answers", "share", x_scale)


def figure(
    title: str,
    caption: str,
    panels: Mapping[str, Sequence[Series]],
    axes: Axes,
    table: Table,
    *,
    names: Iterable[str] = (),
    same_y: bool = True,
) -> Figure:
    """`panels`: by title."""
    return Figure(
        title=title,
        caption=caption,
        panels=tuple(
            Panel(**axes._asdict(), title=each, series=tuple(series))
            for each, series in panels.items()
        ),
        table=table,
        names=tuple(names),
        same_y=same_y,
    )
