"""Draws the panels of a figure: lines with bands over a size, named where they end.

Panels that are compared have the same axes. A strip around each x says all values there.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import numpy as np

from ..data.row_groups import by
from ..elements import CROSSES, Figure, Panel, Series
from ..formatting import beyond_text, count_text, number_text
from ..quantity import Quantity
from .axes import every_x, widened, x_limits, x_ticks, y_limits, y_ticks
from .palette import COLOURS, Places, tone
from .sheet import CARD, LINE_PX, MUTE, Sheet, Width, marker, spread, text_width, widest, wrapped

ZONE, WALL, GRID = COLOURS["p-zone"], COLOURS["p-wall"], COLOURS["p-grid"]
INSET, GAP = 8.0, 8.0  # of the first and last x from the plot's edges; beside it
CROSS_PX = 12.5  # of a cross, with some room
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "failed": {"marker": "x", "ms": 11, "mew": 3},
    "untried": {"marker": "X", "ms": 14, "mew": 1.5, "mfc": ZONE},
    "formula": {"lw": 1.6, "ls": (0, (1.9, 1.9))},
    "busy": {"marker": "o", "ms": 7, "mew": 1.6, "mfc": CARD},
}
CROSSED, BUSY = ("failed", "untried"), "while other work ran"
SAME_PX = 1.5  # lines nearer than that look like one
COVERED: Sequence[Mapping[str, Any]] = (
    {"lw": 2.2},
    {"lw": 6, "alpha": 0.5},
    {"lw": 10, "alpha": 0.45},
    {"lw": 14, "alpha": 0.4},
)
"""By how many lines drawn later cover a line."""
MOST_STRIPS, MOST_MARKS = 80, 32  # of a line; more would cover it
STEPS = 8  # from point to point on linear axes, where the way is that of a power of x
Layout = tuple[float, float, float, float]  # width and height, most of a name's line, text size
LAYOUTS: Mapping[tuple[Width, int, bool], Layout] = {
    ("wide", 1, False): (632, 250, 150, 13),
    ("wide", 2, False): (540, 230, 130, 13),
    ("wide", 1, True): (1100, 320, 150, 13),  # of what has both scales: as wide as the page
    ("wide", 2, True): (540, 270, 130, 13),
}
NARROW: Layout = (326, 190, 104, 14)
Points = list[tuple[int, float, float]]  # the place in the series, x and y in pixels


def draw(
    figure: Figure, places: Places, width: Width, new_sheet: Callable[[float], Sheet] = Sheet
) -> list[Sheet]:
    """Each panel."""
    layout = LAYOUTS.get((width, len(figure.panels), figure.both_scales), NARROW)
    labels = [_labels(panel, layout) for panel in figure.panels]
    names = [{one.backend for one in panel.series} for panel in figure.panels]
    if not any(len(some) > 1 or some & places.keys() for some in names):
        labels = [[] for _ in labels]  # the axis or the title names the line
    every = [label for some in labels for label in some]
    endings = widest((words for one in every for words in one.ending), layout[3])
    room = max(endings, widest((words for one in every for words in one.name), 14, "bold"))
    right = layout[0] - (room + 1.5 * GAP if every else 2 * INSET)
    sheets = []
    for panel, some in zip(figure.panels, labels, strict=True):
        sheet = new_sheet(layout[0])
        tall = max(layout[1], sum(one.tall for one in some))
        _Drawing(figure, panel, places, sheet, right, tall, layout[3]).draw(some)
        sheets.append(sheet)
    return sheets


class _Label(NamedTuple):
    """The lines of a name, and of what stands below it."""

    series: Sequence[Series]
    name: Sequence[str]
    ending: Sequence[str]

    @property
    def tall(self) -> float:
        return LINE_PX * (len(self.name) + len(self.ending)) + 3


def _labels(panel: Panel, layout: Layout) -> list[_Label]:
    return [
        _Label(
            series=mine,
            name=wrapped(name, layout[2]),
            ending=wrapped(
                next((one.ending for one in mine if one.ending), ""), layout[2], layout[3], "normal"
            ),
        )
        for name, mine in by(panel.series, lambda one: one.backend).items()
    ]


class _Drawing:
    """A panel on its sheet: the plot begins at the left, below its headings."""

    def __init__(
        self,
        figure: Figure,
        panel: Panel,
        places: Places,
        sheet: Sheet,
        right: float,
        tall: float,
        size: float,
    ) -> None:
        self.figure, self.panel, self.places, self.sheet = figure, panel, places, sheet
        self.right, self.size, self.xs = right, size, every_x([panel])
        compared = figure.panels if figure.same_y else (panel,)
        alike = [one for one in compared if (one.unit, one.y_scale) == (panel.unit, panel.y_scale)]
        limits = y_limits(alike)
        above = CROSS_PX * max(map(_without_value, compared))
        self.y_limits = widened(limits, panel.y_scale, 0, above / tall)
        self.ticks = y_ticks(limits, panel.y_scale, panel.unit, tall)
        self.left = widest((words for _, words in self.ticks), size) + GAP
        self.titles = wrapped(panel.title, sheet.width)
        self.top = 17.0 * len(self.titles) + 26
        self.bottom = self.top + tall + above
        shared = every_x(one for one in figure.panels if one.x_label == panel.x_label)
        inset = INSET / (right - self.left - 2 * INSET)
        x_ends = x_limits(shared, panel.x_scale)
        self.x_limits = widened(x_ends, panel.x_scale, inset, inset)
        self.box = (self.left, self.top, right - self.left, self.bottom - self.top)
        scales: dict[str, Any] = {"xscale": panel.x_scale, "yscale": panel.y_scale}
        self.axes = sheet.plot(self.box, **scales, xlim=self.x_limits, ylim=self.y_limits)

    def draw(self, labels: Sequence[_Label]) -> None:
        below = self._frame()
        for place, one in enumerate(self.panel.series):
            if one.kind not in CROSSED:
                self._band(one)
                self._way(place, one)
        for one in self.panel.series:
            self._marks(one)
        if self.panel is self.figure.panels[0]:
            below = self._keys(below)
        self._names(labels)
        self._strips()
        self.sheet.height = below + 4

    def at(self, x: float, y: float) -> tuple[float, float]:
        """In pixels of the sheet; above and below the plot at its edge."""
        y = min(max(y, self.y_limits[0]), self.y_limits[1])
        across, up = (self.axes.transScale + self.axes.transLimits).transform((x, y))
        left, _, wide, tall = self.box
        return left + float(across) * wide, self.bottom - float(up) * tall

    def colour(self, name: str, of: str = "b") -> str:
        return COLOURS[f"{of}{tone(name, self.places)}"]

    # ---- axes ------------------------------------------------------------------------------------

    def _frame(self) -> float:
        """Titles, ticks, and the line across; of bytes it is a limit, and what is above does not
        fit. Where the words end.
        """
        sheet, size, bottom = self.sheet, self.size, self.bottom
        for place, words in enumerate(self.titles):
            sheet.name(0, 14 + 17 * place, words)
        sheet.text(0, self.top - 11, self.panel.y_label, size=size)
        for tick, words in self.ticks:
            self.axes.axhline(tick, color=GRID, lw=1, zorder=-1)
            y = self.at(self.x_limits[0], tick)[1]
            sheet.text(self.left - GAP, y + 4.5, words, size=size, ha="right")

        def across(x: float) -> float:
            return self.at(x, self.y_limits[0])[0]

        for tick, words in x_ticks(self.x_limits, self.panel.x_scale, self.xs, across, size):
            sheet.line((across(tick),) * 2, (bottom, bottom + 4), MUTE, lw=1)
            sheet.text(across(tick), bottom + 18, words, size=size, ha="center")
        sheet.line((self.left, self.right), (bottom, bottom), MUTE, lw=1)
        below = wrapped(self.panel.x_label, self.right, size, "normal")
        for place, words in enumerate(below):
            sheet.text(self.right, bottom + 36 + 16 * place, words, size=size, ha="right")
        value, words = self.panel.line or (nan, "")
        if self.y_limits[0] < value < self.y_limits[1]:
            self._line(value, words)
        return bottom + 20 + 16 * len(below)

    def _line(self, value: float, words: str) -> None:
        if self.panel.unit != "bytes":
            wide = {"lw": 5, "alpha": 0.35} if self.panel.wide_line else {"lw": 1}
            self.axes.axhline(value, color=MUTE, zorder=0, **wide)
            y = self.at(self.x_limits[0], value)[1] - 5
            self.sheet.text(self.left + 4, y, words, size=self.size, halo=True)
            return
        self.axes.axhspan(value, self.y_limits[1], color=ZONE, lw=0, zorder=-2)
        self.axes.axhline(value, color=WALL, lw=1.5, zorder=0)
        room = self.right - text_width(self.panel.y_label, self.size) - 2 * GAP
        said = (f"does not fit in {words}", "does not fit", "")
        shown = next(one for one in said if text_width(one, self.size) <= room)
        self.sheet.text(self.right, self.top - 11, shown, WALL, self.size, ha="right")

    # ---- lines -----------------------------------------------------------------------------------

    def _points(self, one: Series) -> Points:
        """Of values that are numbers."""
        pairs = enumerate(zip(one.x, one.y, strict=True))
        return [
            (at, *self.at(x, y))
            for at, (x, y) in pairs
            if y is not None and isfinite(y) and isfinite(x)
        ]

    def _crosses(self, one: Series) -> Points:
        """Those without y stand at the upper edge, several at one x below each other."""
        found, edge = [], self.top + 7.5
        before = self.panel.series[: self.panel.series.index(one)]
        for place, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
            across, down = self.at(x, self.y_limits[1] if y is None else y)
            down += CROSS_PX * sum(map(partial(_lacks, x=x), before)) if y is None else 0.0
            found.append((place, across, max(down, edge)))
        return found

    def _band(self, one: Series) -> None:
        """The intervals: between lines through their ends, or a bar at a single point."""
        ends = enumerate(zip(one.low, one.high, strict=True))
        found = [(at, one.x[at], *both) for at, both in ends if all(map(_is_number, both))]
        look: dict[str, Any] = {"color": self.colour(one.backend), "alpha": 0.2, "zorder": 1}
        for _, run in groupby(enumerate(found), key=lambda at: at[1][0] - at[0]):
            _, xs, *both = zip(*(values for _, values in run), strict=True)
            low, high = (np.clip(some, *self.y_limits) for some in both)
            if len(xs) == 1:
                self.axes.vlines(xs, low, high, lw=6, **look)
            else:
                self.axes.fill_between(xs, low, high, lw=0, **look)

    def _way(self, place: int, one: Series) -> None:
        """The axes cut it where it leaves them."""
        xs: Sequence[float] = one.x
        ys: Sequence[float] = [nan if y is None else y for y in one.y]
        if self.figure.both_scales and self.panel.x_scale == "linear":
            xs, ys = _bent(xs), _bent(ys)
        look = COVERED[min(self._covered(place), len(COVERED) - 1)]
        if one.kind == "formula":
            is_beside = any(other.kind == "measured" for other in self.panel.series)
            look = LOOKS["formula"] if is_beside else COVERED[0]
        self.axes.plot(xs, ys, color=self.colour(one.backend), **look)

    def _covered(self, place: int) -> int:
        """By how many lines drawn later this one is hidden."""
        mine, *later = (
            {x: y for _, x, y in self._points(one)}
            for one in self.panel.series[place:]
            if one.kind == "measured" or one is self.panel.series[place]
        )
        same = [
            sum(abs(there.get(x, inf) - y) <= SAME_PX for x, y in mine.items()) for there in later
        ]
        return sum(2 * count > len(mine) for count in same)

    def _marks(self, one: Series) -> None:
        colour, sheet = self.colour(one.backend), self.sheet
        if one.kind in CROSSED:
            for place, x, y in self._crosses(one):
                sheet.mark(x, y, colour, mec=colour, **LOOKS[one.kind])
                if (one.y[place] or 0) > self.y_limits[1]:  # it is further up
                    tip = (self.top - 1, self.top - 5, self.top - 1)
                    sheet.line((x - 4, x, x + 4), tip, colour, lw=2)
        if one.stop is not None and self.panel.line is not None:
            sheet.mark(
                *self.at(one.stop, self.panel.line[0]), colour, **{**LOOKS["busy"], "mew": 2}
            )
        points = self._points(one) if one.kind == "measured" else []
        for place, x, y in points if len(points) <= MOST_MARKS else ():
            look = {**LOOKS["busy"]} if one.busy and one.busy[place] else {}
            sheet.mark(x, y, colour, **{**look, "marker": marker(one.backend, self.places)})

    # ---- words -----------------------------------------------------------------------------------

    def _keys(self, below: float) -> float:
        """What marks mean that are no backend's, in lines that fit; where they end."""
        panels = self.figure.panels
        kinds = [{one.kind for one in panel.series} for panel in panels]
        keys = {
            kind: next(
                panel for panel, some in zip(panels, kinds, strict=True) if kind in some
            ).crosses(kind)
            for kind in CROSSED
            if any(kind in some for some in kinds)
        }
        if any({"formula", "measured"} <= some for some in kinds):
            keys["formula"] = "formula"
        if any(any(one.busy) for panel in panels for one in panel.series):
            keys["busy"] = BUSY
        x = self.sheet.width
        for kind, words in keys.items():
            wide = 32 + text_width(words, self.size)
            if x + wide - 14 > self.sheet.width:
                x, below = 0.0, below + 20
            xs = (x, x + 14) if kind == "formula" else (x + 6,)
            self.sheet.line(xs, [below - 6] * len(xs), MUTE, **LOOKS[kind])
            self.sheet.text(x + 18, below - 1.5, words, size=self.size)
            x += wide
        return below

    def _names(self, labels: Sequence[_Label]) -> None:
        """At the ends of lines, one below the other."""
        found = []
        for label in labels:
            solid = [
                at for one in label.series if one.kind not in CROSSED for at in self._points(one)
            ]
            points = solid or [at for one in label.series for at in self._crosses(one)]
            if points:
                found.append((label, *max(points, key=lambda at: at[1])[1:]))
        tops = spread(
            [y - 10 for _, _, y in found],
            [label.tall for label, *_ in found],
            self.top - 8,
            self.bottom + 6,
        )
        for (label, x, y), top in zip(found, tops, strict=True):
            left, name = self.right + GAP, label.series[0].backend
            if abs(top + 8 - y) > 9 or self.right - x > INSET + 1:
                self.sheet.line((x + 5, left - 3), (y, top + 8), self.colour(name), lw=1, alpha=0.6)
            for words in label.name:
                self.sheet.name(left, top + 13, words, self.colour(name, "t"))
                top += LINE_PX
            for words in label.ending:
                self.sheet.text(left, top + 13, words, size=self.size)
                top += LINE_PX

    def _strips(self) -> None:
        """What is said at each x, from the uppermost value down."""
        found: dict[float, list[tuple[float, str]]] = {}
        every = [
            (one, at, y)
            for one in self.panel.series
            if one.kind in CROSSED
            for at, _, y in self._crosses(one)
        ]
        every += [
            (one, at, y)
            for one in self.panel.series
            if one.kind not in CROSSED
            for at, _, y in self._points(one)
        ]
        known = {(one.backend, one.x[at]) for one, at, _ in every if one.kind != "formula"}
        for one, at, y in every:
            if one.kind != "formula" or (one.backend, one.x[at]) not in known:
                found.setdefault(one.x[at], []).append((y, _said(one, at, self.panel)))
        xs = sorted(found) if len(found) <= MOST_STRIPS else []
        places = [self.at(x, self.y_limits[0])[0] for x in xs]
        middles = [(one + other) / 2 for one, other in pairwise(places)]
        label = self.panel.x_label.partition(" (")[0]
        for x, (start, end) in zip(xs, pairwise([self.left, *middles, self.right]), strict=False):
            where = count_text(x) if x == int(x) else number_text(x)
            said = [words for _, words in sorted(found[x])]
            box = (start, self.top, end - start, self.bottom - self.top)
            self.sheet.title(box, "\n".join([f"{label} = {where}", *said]))


def _is_number(value: float | None) -> bool:
    return value is not None and isfinite(value)


def _bent(values: Sequence[float]) -> list[float]:
    """With more points between each two: a power of x stays one."""
    between = (np.geomspace(one, other, STEPS, endpoint=False) for one, other in pairwise(values))
    return [*(float(value) for some in between for value in some), values[-1]]


def _lacks(one: Series, x: float) -> bool:
    """Whether it has a cross at this x that is drawn above all values, as it has none."""
    return one.kind in CROSSED and (x, None) in zip(one.x, one.y, strict=True)


def _without_value(panel: Panel) -> int:
    """The most such crosses at one x."""
    return max((sum(_lacks(one, x) for one in panel.series) for x in every_x([panel])), default=0)


def _said(one: Series, place: int, panel: Panel) -> str:
    """`sdpa 3.2 ms (3.1 ms to 3.3 ms)`."""
    y, unit = one.y[place], panel.unit
    low, high = (some[place] if some else None for some in (one.low, one.high))
    beyond = beyond_text(y) if y is not None and unit == "share" else ""
    value = Quantity(y, unit, low, high, note=beyond)
    if one.kind in CROSSED:
        why = one.why or CROSSES[unit == "bytes"]
        return f"{one.backend} {why}" if y is None else f"{one.backend} {value}, {why}"
    busy = f", {BUSY}" if one.busy and one.busy[place] else ""
    how = ", by formula" if one.kind == "formula" else ""
    return f"{one.backend} {value}{one.notes[place] if one.notes else ''}{how}{busy}"
