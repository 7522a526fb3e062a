"""How a panel of a chart is laid out before it is drawn: both axes, and the room for names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log

from ..data.row_groups import by
from ..elements import Figure, Panel, Series
from .chart_axes import Axis, Tick, every_x, x_limits, y_limits, y_ticks
from .marks import CROSS_PX, TEXT_EM, Width, text_width, wrapped

NAME_PX, LINE_PX = 14.0, 15
LABEL_GAP, TICK_GAP = 12.0, 7.0
SAME_LOG = 0.04  # ends that differ by less share a label
CROSSED = ("failed", "untried")


@dataclass(frozen=True, slots=True)
class Layout:
    """Measures of a panel, in units of its view box. `name`: most of a name's line."""

    width: float
    height: float
    name: float
    text_px: float


LAYOUTS: Mapping[tuple[Width, int], Layout] = {
    ("wide", 1): Layout(632, 250, 150, 13),
    ("wide", 2): Layout(540, 230, 130, 13),
    ("narrow", 0): Layout(326, 190, 104, 14),
}
WALLS: Mapping[tuple[Width, int], Layout] = {  # of what has both scales: as wide as the page
    ("wide", 1): Layout(1100, 320, 150, 13),
    ("wide", 2): Layout(540, 270, 130, 13),
    ("narrow", 0): Layout(326, 250, 104, 14),
}


@dataclass(frozen=True, slots=True)
class Frame:
    """What is known of a panel before its width: limits of both axes, height, labels of y."""

    y: Axis
    ticks: Sequence[Tick]
    x_limits: tuple[float, float]
    tick_room: float

    @classmethod
    def of(cls, figure: Figure, panel: Panel, layout: Layout, label: float) -> "Frame":
        """`label`: the room for names."""
        compared = figure.panels if figure.same_y else (panel,)
        alike = [one for one in compared if one.unit == panel.unit and one.y_scale == panel.y_scale]
        shared = [one for one in figure.panels if one.x_label == panel.x_label]
        height = max(layout.height, *(_label_px(one, layout, label) for one in compared))
        above = 2.3 * CROSS_PX * max(map(_floating, compared))
        y = Axis(panel.y_scale, *y_limits(alike), height + above, above)
        ticks = y_ticks(y, panel.unit)
        room = max((text_width(words, layout.text_px) for _, words in ticks), default=0.0)
        return cls(y, ticks, x_limits(every_x(shared), panel.x_scale), room + TICK_GAP + 2)


def _floating(panel: Panel) -> int:
    """The most points at one x that are drawn above all values, as they have none."""
    failed = [one for one in panel.series if one.kind in CROSSED]
    xs = [x for one in failed for x, y in zip(one.x, one.y, strict=True) if y is None]
    return max((xs.count(x) for x in xs), default=0)


def _label_px(panel: Panel, layout: Layout, label: float) -> float:
    """The height of all names, one below the other."""
    return float(sum(len(one.lines) * LINE_PX + 3 for one in labels_of(panel, label, layout)))


@dataclass(frozen=True, slots=True)
class Label:
    """What stands at the end of a line, or of several that end as one: lines of text, each with the
    backend that it names, if it does.
    """

    lines: Sequence[tuple[str, str]]
    series: Sequence[Series]


def labels_of(panel: Panel, room: float, layout: Layout) -> list[Label]:
    """In the order of the first series."""
    room -= LABEL_GAP
    bundles: list[list[Sequence[Series]]] = []
    for mine in by(panel.series, lambda one: one.backend).values():
        alike = (some for some in bundles if _end_as_one(some[0], mine))
        bundle = next(alike, None)
        if bundle is None:
            bundles.append([mine])
        else:
            bundle.append(mine)
    return [
        Label(
            lines=[
                *(
                    (part, mine[0].backend)
                    for mine in some
                    for part in wrapped(mine[0].backend, room + 1, NAME_PX)
                ),
                *((part, "") for part in _parts(_ending(some[0]), room + 1, layout.text_px)),
            ],
            series=[one for mine in some for one in mine],
        )
        for some in bundles
    ]


def _parts(ending: str, room: float, text_px: float) -> list[str]:
    return wrapped(ending, room, text_px, TEXT_EM) if ending else []


def _end_as_one(some: Sequence[Series], others: Sequence[Series]) -> bool:
    (x, y), (to_x, to_y) = _end(some), _end(others)
    is_near = min(y, to_y) > 0 and abs(log(y / to_y)) <= SAME_LOG
    return x == to_x and is_near and _ending(some) == _ending(others)


def _end(mine: Sequence[Series]) -> tuple[float, float]:
    """Where the line of a backend ends; (0, 0) without one."""
    return max(
        (
            (x, y)
            for one in mine
            if one.kind not in CROSSED
            for x, y in zip(one.x, one.y, strict=True)
            if y is not None and isfinite(y)
        ),
        default=(0.0, 0.0),
    )


def _ending(mine: Sequence[Series]) -> str:
    return next((one.ending for one in mine if one.ending), "")
