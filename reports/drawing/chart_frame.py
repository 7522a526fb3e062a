"""How a panel of a chart is laid out before it is drawn: both axes, and the room for names."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..elements import Figure, Panel, Series
from .chart_axes import Axis, Tick, every_x, x_limits, y_limits, y_ticks
from .marks import CROSS_PX, TEXT_EM, Width, text_width, wrapped

NAME_PX, LINE_PX = 14.0, 15
LABEL_GAP, TICK_GAP = 12.0, 7.0


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
        height = layout.height
        height = max(height, *(_label_px(one, layout, label) for one in compared))
        above = 2.3 * CROSS_PX * max(map(_floating, compared))
        y = Axis(panel.y_scale, *y_limits(alike), height + above, above)
        ticks = y_ticks(y, panel.unit)
        room = max((text_width(words, layout.text_px) for _, words in ticks), default=0.0)
        return cls(y, ticks, x_limits(every_x(shared), panel.x_scale), room + TICK_GAP + 2)


def _floating(panel: Panel) -> int:
    """The most points at one x that are drawn above all values, as they have none."""
    failed = [one for one in panel.series if one.kind == "failed"]
    xs = [x for one in failed for x, y in zip(one.x, one.y, strict=True) if y is None]
    return max((xs.count(x) for x in xs), default=0)


def _label_px(panel: Panel, layout: Layout, label: float) -> float:
    """The height of all names, one below the other."""
    blocks = [block_of(mine, label, layout) for _, mine in by_name(panel)]
    return float(sum(len(block) * LINE_PX + 3 for block in blocks))


def by_name(panel: Panel) -> Iterator[tuple[str, list[Series]]]:
    """The series of each name, in the order of their first ones."""
    order = {one.backend: place for place, one in reversed(list(enumerate(panel.series)))}
    ordered = sorted(panel.series, key=lambda one: order[one.backend])
    for name, mine in groupby(ordered, key=lambda one: one.backend):
        yield name, list(mine)


def block_of(mine: Sequence[Series], room: float, layout: Layout) -> list[tuple[str, bool]]:
    """Lines of text at the end of a line, and whether they are of its name."""
    ending = next((one.ending for one in mine if one.ending), "")
    room -= LABEL_GAP
    names = wrapped(mine[0].backend, room + 1, NAME_PX)
    said = wrapped(ending, room + 1, layout.text_px, TEXT_EM) if ending else []
    return [*((one, True) for one in names), *((one, False) for one in said)]
