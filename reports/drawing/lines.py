"""Draws the panels of a figure: lines with bands over a size, named where they end.

Panels that are compared have the same axes. A strip around each x says all values there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import isfinite, nan
from typing import Any

import numpy as np
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from ..elements import CROSSES, Figure, Panel, Series
from ..formatting import beyond_text, count_text, number_text
from ..quantity import Quantity
from .axes import every_x, widened, x_limits, x_ticks, y_limits, y_ticks
from .labels import CROSSED, Label, labels_of
from .palette import COLOURS, Places, tone
from .sheet import (
    CARD,
    INK,
    LINE_PX,
    MUTE,
    NAME_PX,
    Sheet,
    Value,
    Width,
    marker,
    spread,
    text_width,
    widest,
    wrapped,
)

ZONE, WALL, GRID = COLOURS["p-zone"], COLOURS["p-wall"], COLOURS["p-grid"]
INSET, TICK_GAP, LABEL_GAP = 8.0, 7.0, 12.0  # of the first and last x from the plot's edges
CROSS_PX = 5.5
CROSS_LOOKS: Mapping[str, Mapping[str, Any]] = {  # solid: out of memory; hollow: predicted
    "failed": {"marker": "x", "ms": 2 * CROSS_PX, "mew": 3},
    "untried": {"marker": "X", "ms": 14, "mew": 1.5, "mfc": ZONE},
}
MARK_PX = 7.0
SAME_PX = 1.5  # lines nearer than that look like one
COVERED = ((2.2, 1.0), (6.0, 0.5), (10.0, 0.45), (14.0, 0.4))
"""Width and opacity of a line, by how many lines drawn later cover it."""
MOST_STRIPS, MOST_MARKS = 80, 32  # of a line; more would cover it
STEPS = 8  # from point to point on linear axes, where the way is that of a power of x
Points = list[tuple[int, float, float]]  # the place in the series, x and y in pixels


@dataclass(frozen=True, slots=True)
class Layout:
    """Measures of a panel in pixels. `name`: most of a name's line."""

    width: float
    height: float
    name: float
    size: float


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


def draw(
    figure: Figure,
    places: Places,
    width: Width,
    cases: Mapping[str, int],
    new_sheet: Callable[[float], Sheet] = Sheet,
) -> list[Sheet]:
    """Each panel. `cases`: the number of each case on the page."""
    layouts = WALLS if figure.both_scales else LAYOUTS
    layout = layouts.get((width, len(figure.panels))) or layouts["narrow", 0]
    labels = [labels_of(panel, layout.name, layout.size) for panel in figure.panels]
    names = [{one.backend for one in panel.series} for panel in figure.panels]
    if not any(len(some) > 1 or some & places.keys() for some in names):
        labels = [[] for _ in labels]  # the axis or the title names the line
    widths = [label.width(layout.size) for some in labels for label in some]
    right = layout.width - (max(widths) + LABEL_GAP if widths else 2 * INSET)
    sheets = [new_sheet(layout.width) for _ in figure.panels]
    drawings = [
        _Drawing(figure, panel, layout, some, places, sheet, right)
        for panel, some, sheet in zip(figure.panels, labels, sheets, strict=True)
    ]
    left = max((one.tick_room for one in drawings), default=0.0) if figure.same_y else 0.0
    for one in drawings:
        one.draw(left or one.tick_room, cases)
    return sheets


@dataclass
class _Drawing:
    """A panel on its sheet: the plot begins at the left, below its headings."""

    figure: Figure
    panel: Panel
    layout: Layout
    labels: Sequence[Label]
    places: Places
    sheet: Sheet
    right: float

    def __post_init__(self) -> None:
        figure, panel, layout = self.figure, self.panel, self.layout
        compared = figure.panels if figure.same_y else (panel,)
        alike = [one for one in compared if one.unit == panel.unit and one.y_scale == panel.y_scale]
        tall = max(layout.height, sum(label.height for label in self.labels))
        above = 2.3 * CROSS_PX * max(map(_floating, compared))
        limits = y_limits(alike)
        self.y_limits = widened(limits, panel.y_scale, 0, above / tall)
        self.ticks = y_ticks(limits, panel.y_scale, panel.unit, tall)
        self.tick_room = TICK_GAP + 2 + widest([words for _, words in self.ticks], layout.size)
        self.titles = wrapped(panel.title, layout.width, NAME_PX, bold=True) if panel.title else []
        self.top = 17.0 * len(self.titles) + 26
        self.bottom = self.top + tall + above
        self.xs = every_x([panel])
        self.ways: list[Any] = []

    def draw(self, left: float, cases: Mapping[str, int]) -> None:
        self.left, panel = left, self.panel
        shared = [one for one in self.figure.panels if one.x_label == panel.x_label]
        inset = INSET / (self.right - left - 2 * INSET)
        limits = x_limits(every_x(shared), panel.x_scale)
        self.x_limits = widened(limits, panel.x_scale, inset, inset)
        box = (left, self.top, self.right - left, self.bottom - self.top)
        scales = {"xscale": panel.x_scale, "yscale": panel.y_scale}
        self.axes = self.sheet.plot(*box, **scales, xlim=self.x_limits, ylim=self.y_limits)
        self.share = self.axes.transScale + self.axes.transLimits
        below = self._grid()
        for place, one in enumerate(panel.series):
            if one.kind not in CROSSED:
                self._band(one)
                self._way(place, one)
        for one in panel.series:
            self._marks(one)
        self._line()
        if panel is self.figure.panels[0]:
            below = self._keys(below)
        self._names()
        self._strips(cases)
        self.sheet.height = below + 4

    def pixels(self, xs: Sequence[float], ys: Sequence[float]) -> Any:
        """[points, 2]: places on the sheet, some of them beyond the plot."""
        size = (self.right - self.left, self.top - self.bottom)
        shares = self.share.transform(np.column_stack((xs, ys)).astype(float))
        return np.clip(shares, -1e4, 1e4) * size + (self.left, self.bottom)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """On the sheet; above and below the plot at its edge."""
        ((across, down),) = self.pixels([x], [min(max(y, self.y_limits[0]), self.y_limits[1])])
        return float(across), float(down)

    # ---- axes ------------------------------------------------------------------------------------

    def _grid(self) -> float:
        """Where the labels end."""
        sheet, size, bottom = self.sheet, self.layout.size, self.bottom
        for place, one in enumerate(self.titles):
            sheet.text(0, 14 + 17 * place, one, INK, NAME_PX, bold=True)
        said = wrapped(self.panel.y_label, self.layout.width, size)[0]
        sheet.text(0, self.top - 11, said, size=size)
        for tick, words in self.ticks:
            self.axes.axhline(tick, color=GRID, lw=1, zorder=-1)
            y = self.at(self.x_limits[0], tick)[1]
            sheet.text(self.left - TICK_GAP, y + 4.5, words, size=size, ha="right")

        def across(x: float) -> float:
            return self.at(x, self.y_limits[0])[0]

        for tick, words in x_ticks(self.x_limits, self.panel.x_scale, self.xs, across, size):
            sheet.line((across(tick),) * 2, (bottom, bottom + 4), MUTE, lw=1)
            sheet.text(across(tick), bottom + 18, words, size=size, ha="center")
        sheet.line((self.left, self.right), (bottom, bottom), MUTE, lw=1)
        below = wrapped(self.panel.x_label, self.right, size)
        for place, words in enumerate(below):
            sheet.text(self.right, bottom + 36 + 16 * place, words, size=size, ha="right")
        return bottom + 20 + 16 * len(below)

    def _line(self) -> None:
        """A line across; of bytes it is a limit, and what is above does not fit."""
        value, words = self.panel.line or (nan, "")
        if not self.y_limits[0] < value < self.y_limits[1]:
            return
        y, size = self.at(self.x_limits[0], value)[1], self.layout.size
        if self.panel.unit != "bytes":
            wide = {"lw": 5, "alpha": 0.35} if self.panel.wide_line else {"lw": 1}
            self.axes.axhline(value, color=MUTE, zorder=0, **wide)
            self.sheet.text(self.left + 4, y - 5, words, size=size, halo=True)
            return
        self.axes.axhspan(value, self.y_limits[1], color=ZONE, lw=0, zorder=-2)
        self.axes.axhline(value, color=WALL, lw=1.5, zorder=0)
        for said in (f"does not fit in {words}", "does not fit"):
            box = (self.left + 7, self.top + 4, text_width(said, size), LINE_PX)
            if self.top + 4 + LINE_PX < y and self._is_free(*box):
                self.sheet.text(self.left + 7, self.top + 1 + LINE_PX, said, WALL, size)
                return

    def _is_free(self, left: float, top: float, width: float, height: float) -> bool:
        """Whether it lies within the plot, and no line and no cross within it."""
        box = Bbox.from_bounds(left, top, width, height).padded(3)
        near = box.padded(CROSS_PX)
        crosses = (at for one in self.panel.series for at in self._crosses(one))
        return (
            box.x1 < self.right
            and not any(Path(way).intersects_bbox(box, filled=False) for way in self.ways)
            and not any(near.contains(x, y) for _, x, y in crosses)
        )

    # ---- lines -----------------------------------------------------------------------------------

    def _points(self, one: Series) -> Points:
        """Of values that are numbers."""
        return [
            (place, *self.at(x, y))
            for place, (x, y) in enumerate(zip(one.x, one.y, strict=True))
            if y is not None and isfinite(y) and isfinite(x)
        ]

    def _band(self, one: Series) -> None:
        """The intervals: between lines through their ends, or a bar at a single point."""
        found = [
            (place, one.x[place], low, high)
            for place, (low, high) in enumerate(zip(one.low, one.high, strict=True))
            if low is not None and high is not None and isfinite(low) and isfinite(high)
        ]
        look = {"color": COLOURS[f"b{tone(one.backend, self.places)}"], "alpha": 0.2, "zorder": 1}
        for _, run in groupby(enumerate(found), key=lambda at: at[1][0] - at[0]):
            _, xs, *ends = zip(*(values for _, values in run), strict=True)
            low, high = (np.clip(bounds, *self.y_limits) for bounds in ends)
            if len(xs) == 1:
                self.axes.vlines(xs, low, high, lw=6, **look)
            else:
                self.axes.fill_between(xs, low, high, lw=0, **look)

    def _way(self, place: int, one: Series) -> None:
        """The axes cut it where it leaves them."""
        pairs = zip(one.x, one.y, strict=True)
        xs, ys = zip(*((x, nan if y is None else y) for x, y in pairs), strict=True)
        if self.figure.both_scales and self.panel.x_scale == "linear":
            xs, ys = (_bent(values) for values in (xs, ys))
        self.ways.append(self.pixels(xs, ys))
        wide, opacity = COVERED[self._covered(place) if one.kind == "measured" else 0]
        look: dict[str, Any] = {"lw": wide, "alpha": opacity if opacity < 1 else None}
        if one.kind == "formula" and any(other.kind == "measured" for other in self.panel.series):
            look = {"lw": 1.6, "ls": (0, (1.9, 1.9))}
        self.axes.plot(xs, ys, color=COLOURS[f"b{tone(one.backend, self.places)}"], **look)

    def _covered(self, place: int) -> int:
        """By how many lines drawn later this one is hidden."""
        mine = {x: y for _, x, y in self._points(self.panel.series[place])}
        count = 0
        for other in self.panel.series[place + 1 :]:
            there = {x: y for _, x, y in self._points(other)} if other.kind == "measured" else {}
            same = sum(x in there and abs(there[x] - y) <= SAME_PX for x, y in mine.items())
            count += bool(mine) and 2 * same > len(mine)
        return min(count, len(COVERED) - 1)

    def _marks(self, one: Series) -> None:
        colour, sheet = COLOURS[f"b{tone(one.backend, self.places)}"], self.sheet
        if one.kind in CROSSED:
            for place, x, y in self._crosses(one):
                sheet.marks([x], [y], colour, mec=colour, **CROSS_LOOKS[one.kind])
                if (one.y[place] or 0) > self.y_limits[1]:  # it is further up
                    sheet.line((x - 4, x, x + 4), np.subtract(self.top, (1, 5, 1)), colour, lw=2)
        if one.stop is not None and self.panel.line is not None:
            x, y = self.at(one.stop, self.panel.line[0])
            sheet.marks([x], [y], colour, marker="o", ms=MARK_PX, mfc=CARD, mew=2)
        points = self._points(one) if one.kind == "measured" else []
        for busy in (False, True):
            here = [(x, y) for at, x, y in points if (one.busy[at : at + 1] == (True,)) == busy]
            if here and len(points) <= MOST_MARKS:
                look = {"mfc": CARD, "mew": 1.6} if busy else {"mew": 0}
                shape = marker(self.places.get(one.backend, 0))
                sheet.marks(*zip(*here, strict=True), colour, marker=shape, ms=MARK_PX, **look)

    def _crosses(self, one: Series) -> Points:
        """Those without y stand at the upper edge, several at one x below each other."""
        if one.kind not in CROSSED:
            return []
        found, edge = [], self.top + CROSS_PX + 2
        before = self.panel.series[: self.panel.series.index(one)]
        for place, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
            across, down = self.at(x, self.y_limits[1] if y is None else y)
            if y is None:
                down = edge + 2.3 * CROSS_PX * sum(_without_value(other, x) for other in before)
            found.append((place, across, max(down, edge)))
        return found

    # ---- words -----------------------------------------------------------------------------------

    def _keys(self, below: float) -> float:
        """What marks of all panels mean that are no backend's, in lines that fit; where they end."""
        panels, grey = self.figure.panels, {"color": MUTE, "mec": MUTE}
        every = [one for panel in panels for one in panel.series]
        has = {(panel, one.kind) for panel in panels for one in panel.series}
        keys: list[tuple[str, Mapping[str, Any]]] = [
            (next(panel for panel in panels if (panel, kind) in has).crosses(kind), look)
            for kind, look in CROSS_LOOKS.items()
            if any(one.kind == kind for one in every)
        ]
        if any({(panel, "formula"), (panel, "measured")} <= has for panel in panels):
            keys.append(("formula", {"lw": 1.6, "ls": (0, (1.9, 1.9))}))
        if any(any(one.busy) for one in every):
            keys.append(("while other work ran", {"marker": "o", "ms": MARK_PX, "mfc": CARD}))
        x = 0.0
        for words, look in keys:
            wide = 18 + text_width(words, self.layout.size)
            if not x or x + wide > self.layout.width:
                x, below = 0.0, below + 20
            xs = (x, x + 14) if "ls" in look else (x + 6,)
            self.sheet.line(xs, [below - 6] * len(xs), **{**grey, **look})
            self.sheet.text(x + 18, below - 1.5, words, size=self.layout.size)
            x += wide + 14
        return below

    def _names(self) -> None:
        """At the ends of lines, one below the other."""
        ends, labels = [], []
        for label in self.labels:
            solid = [
                at for one in label.series if one.kind not in CROSSED for at in self._points(one)
            ]
            points = solid or [at for one in label.series for at in self._crosses(one)]
            if points:
                ends.append(max(points, key=lambda at: at[1])[1:])
                labels.append(label)
        sizes = [label.height for label in labels]
        wanted = [y + size / 2 - 10 for (_, y), size in zip(ends, sizes, strict=True)]
        centres = spread(wanted, sizes, self.top - 8, self.bottom + 6)
        for (x, y), centre, label in zip(ends, centres, labels, strict=True):
            left, top = self.right + LABEL_GAP - 4, centre - label.height / 2
            if abs(top + 8 - y) > 9 or self.right - x > INSET + 1:
                colour = COLOURS[f"b{tone(label.names[0][1], self.places)}"]
                self.sheet.line((x + 5, left - 3), (y, top + 8), colour, lw=1, alpha=0.6)
            for words, name in label.names:
                colour = COLOURS[f"t{tone(name, self.places)}"]
                self.sheet.text(left, top + 13, words, colour, NAME_PX, bold=True)
                top += LINE_PX
            for words in label.ending:
                self.sheet.text(left, top + 13, words, size=self.layout.size)
                top += LINE_PX

    def _strips(self, cases: Mapping[str, int]) -> None:
        """What is said at each x, from the uppermost value down."""
        found: dict[float, list[Value]] = {}
        known = {
            (one.backend, x)
            for one in self.panel.series
            for x, y in zip(one.x, one.y, strict=True)
            if one.kind in CROSSED or (one.kind == "measured" and y is not None)
        }
        for one in self.panel.series:
            for place, _, y in self._crosses(one) or self._points(one):
                x = one.x[place]
                if one.kind != "formula" or (one.backend, x) not in known:
                    case = cases.get(one.cases[place], "-") if place < len(one.cases) else "-"
                    words = _said(one, place, self.panel)
                    value = (y, words, tone(one.backend, self.places), str(case))
                    found.setdefault(x, []).append(value)
        xs = sorted(found) if len(found) <= MOST_STRIPS else []
        label = self.panel.x_label.partition(" (")[0]
        places = [self.at(x, self.y_limits[0])[0] for x in xs]
        middles = [(one + other) / 2 for one, other in pairwise(places)]
        for x, across, ends in zip(
            xs, places, pairwise([self.left, *middles, self.right]), strict=True
        ):
            where = count_text(x) if x == int(x) else number_text(x)
            values = sorted(found[x], key=lambda value: value[0])
            box = (ends[0], self.top, ends[1] - ends[0], self.bottom - self.top)
            self.sheet.strip(box, across, f"{label} = {where}", values)


def _bent(values: Sequence[float]) -> list[float]:
    """With more points between each two: a power of x stays one."""
    between = (np.geomspace(one, other, STEPS, endpoint=False) for one, other in pairwise(values))
    return [*(float(value) for some in between for value in some), values[-1]]


def _without_value(one: Series, x: float) -> bool:
    """Whether it has a cross at this x that is drawn above all values, as it has none."""
    return one.kind in CROSSED and (x, None) in zip(one.x, one.y, strict=True)


def _floating(panel: Panel) -> int:
    """The most such crosses at one x."""
    return max(
        (sum(_without_value(one, x) for one in panel.series) for x in every_x([panel])), default=0
    )


def _said(one: Series, place: int, panel: Panel) -> str:
    """`sdpa 3.2 ms (3.1 ms to 3.3 ms)`."""
    y, unit = one.y[place], panel.unit
    low, high = (some[place] if place < len(some) else None for some in (one.low, one.high))
    beyond = beyond_text(y) if y is not None and unit == "share" else ""
    value = Quantity(y, unit, low, high, note=beyond)
    if one.kind in CROSSED:
        why = one.why or CROSSES[unit == "bytes"]
        return f"{one.backend} {why}" if y is None else f"{one.backend} {value}, {why}"
    busy = ", while other work ran" if one.busy[place : place + 1] == (True,) else ""
    how = ", by formula" if one.kind == "formula" else ""
    note = one.notes[place] if place < len(one.notes) else ""
    return f"{one.backend} {value}{note}{how}{busy}"
