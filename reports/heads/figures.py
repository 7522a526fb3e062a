"""Figures of intervals over seeds or sequences."""

from collections.abc import Iterable, Mapping
from math import inf, isnan, nan
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


def bounded(one: Interval | None, unit: Unit = "plain", least: float = -inf) -> Quantity:
    """`0.12 (0.11 to 0.14)`. `least`: what the quantity cannot fall below."""
    if one is None:
        return Quantity(None)
    return Quantity(one.value, unit, known(one.low, least), one.high)


Points = Mapping[int, Interval | float | None] | Mapping[float, Interval | None]
"""By x."""


class Axes(NamedTuple):
    """Of all panels of a figure; `unit`: of y."""

    x_label: str
    y_label: str
    unit: Unit = "plain"
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"


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
                series=tuple(_line(name, points) for name, points in lines.items()),
                **axes._asdict(),
            )
            for each, lines in panels.items()
        ),
        table=table,
        names=tuple(names),
        same_y=same_y,
    )


def _line(name: str, points: Points) -> Series:
    ends = [
        (one.value, one.low, one.high) if isinstance(one, Interval) else (one, nan, nan)
        for one in points.values()
    ]
    y, low, high = zip(*ends, strict=True)
    return Series(
        backend=name,
        kind="measured",
        x=tuple(map(float, points)),
        y=tuple(None if one is None else known(one) for one in y),
        low=tuple(map(known, low)),
        high=tuple(map(known, high)),
    )
