"""Intervals over seeds, or over sequences: in cells of tables, and figures of them."""

from collections.abc import Iterable, Mapping
from math import inf, isinf, isnan
from typing import NamedTuple

from ...harness.stats.intervals import Interval
from ..elements import Figure, Panel, Scale, Series, Table
from ..formatting import length_text, number_text, plural
from ..quantity import Number, Quantity, Unit
from .trained import H, Learnt


def known(value: float, least: float = -inf, most: float = inf) -> float | None:
    """A bound, where Student's t may pass what the quantity cannot; None without one."""
    return None if isnan(value) else min(most, max(least, value))


def percent(share: float | None) -> Number:
    """With one digit, as accuracies have it."""
    return Number("" if share is None or isnan(share) else f"{100 * share:.1f} %")


def percents(one: Interval) -> Number:
    """`98.9 % (98.1 to 99.7)`, bounds from 0 to 100 %; "" without readings."""
    low, high = (known(end, 0.0, 1.0) for end in (one.low, one.high))
    bounds = "" if low is None or high is None else f" ({100 * low:.1f} to {100 * high:.1f})"
    return Number(percent(one.value) + bounds)


def bounded(one: Interval | None, unit: Unit = "plain", least: float = -inf) -> Quantity:
    """`0.12 (0.11 to 0.14)`. `least`: what the quantity cannot fall below."""
    if one is None:
        return Quantity(None)
    return Quantity(one.value, unit, known(one.low, least), one.high)


def learnt_text(one: Learnt[H]) -> str:
    """`6 of 6 seeds learn it, in 160 (140 to 200) steps`; `1 of 6 seeds learns it within 1 500
    steps` if the median seed does not.
    """
    count, of, limit = one.learnt_seeds, len(one.until_learnt), length_text(one.limit_steps or 0)
    learns = "learns" if count == 1 else "learn"
    if not count:
        return f"none of {plural(of, 'seed')} learns it within {limit} steps"
    text = f"{count} of {plural(of, 'seed')} {learns} it"
    if one.steps is None or isinf(one.steps.value):
        return f"{text} within {limit} steps"
    return f"{text}, in {steps_text(one)} steps"


def seeds_text(one: Learnt[H]) -> Number:
    """`5 of 6 (36 % to 100 %)` seeds that learn it; "" without a goal."""
    if one.share is None:
        return Number()
    bounds = f"{100 * one.share.low:.0f} % to {100 * one.share.high:.0f} %"
    return Number(f"{one.learnt_seeds} of {one.share.units} ({bounds})")


def steps_text(one: Learnt[H]) -> Number:
    """`160 (140 to 200)`; `400 (300 to > 800)` and `> 800` beyond the limit; "" without a goal."""
    steps, limit = one.steps, f"> {length_text(one.limit_steps or 0)}"
    if steps is None:
        return Number()
    value, low, high = (
        limit if isinf(end) else "" if isnan(end) else length_text(round(end))
        for end in (steps.value, steps.low, steps.high)
    )
    is_sure = isnan(steps.low) or low == high == value
    return Number(value if is_sure else f"{value} ({low} to {high})")


def times_text(one: Interval) -> str:
    """`4.2 (3.1 to 5.0) times`; `above 9.4 times` if the limit leaves it open."""
    if isinf(one.value):
        return f"above {number_text(one.low)} times"
    high = "more" if isinf(one.high) else number_text(one.high)
    bounds = "" if isnan(one.low) else f" ({number_text(one.low)} to {high})"
    return f"{number_text(one.value)}{bounds} times"


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
