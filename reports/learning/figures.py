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


Points = Mapping[float, Interval | None]
"""By x."""


class Axes(NamedTuple):
    """Of all panels of a figure; `unit`: of y; `within`: where bars end."""

    x_label: str
    y_label: str
    unit: Unit = "plain"
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    within: tuple[float, float] = (-inf, inf)


def right_answers(x_label: str, x_scale: Scale = "linear") -> Axes:
    return Axes(x_label, "right answers", "share", x_scale, within=(0, 1))


def figure(
    title: str,
    caption: str,
    panels: Mapping[str, Mapping[str, Points]],
    axes: Axes,
    table: Table,
    *,
    names: Iterable[str] = (),
    same_y: bool = True,
) -> Figure:
    """`panels`: by title, with points of lines by their names; intervals are drawn as bars."""
    return Figure(
        title=title,
        caption=caption,
        panels=tuple(
            Panel(
                title=each,
                series=tuple(_line(name, points, axes.within) for name, points in lines.items()),
                **{name: of for name, of in axes._asdict().items() if name != "within"},
            )
            for each, lines in panels.items()
        ),
        table=table,
        names=tuple(names),
        same_y=same_y,
    )


def _line(name: str, points: Points, within: tuple[float, float]) -> Series:
    by_x = {x: points[x] for x in sorted(points)}
    values = by_x.values()
    return Series(
        backend=name,
        kind="measured",
        x=tuple(map(float, by_x)),
        y=tuple(None if one is None else known(one.value) for one in values),
        low=tuple(None if one is None else known(one.low, *within) for one in values),
        high=tuple(None if one is None else known(one.high, *within) for one in values),
    )
