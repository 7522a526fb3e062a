"""Draws the panels of a figure: lines with bands over a size, named where they end.

Panels that are compared have the same axes. A strip around each x says all values there.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import numpy as np

from ..data.row_groups import by
from ..elements import CROSSES, Figure, Panel, Series
from ..formatting import beyond_text, count_text, number_text
from ..quantity import Quantity, Unit
from .axes import every_x, share_of, widened, x_limits, x_ticks, y_limits, y_ticks
from .palette import COLOURS, Places, tone
from .sheet import CARD, LINE_PX, MUTE, Sheet, Width, marker, spread, text_width, widest, wrapped

ZONE, WALL, GRID = COLOURS["p-zone"], COLOURS["p-wall"], COLOURS["p-grid"]
INSET, GAP = 8.0, 8.0  # of the first and last x from the plot's edges; beside it
MOST_LED = 4  # names with a line to the end of theirs; more are a list, with marks
LISTED_PX = 13  # of a mark in it
CROSS_PX = 12.5  # of a cross, with some room
LOOKS: Mapping[str, Mapping[str, Any]] = {
    "failed": {"marker": "x", "ms": 11, "mew": 3},
    "untried": {"marker": "X", "ms": 14, "mew": 1.5, "mfc": ZONE},
    "formula": {"lw": 1.6, "ls": (0, (1.9, 1.9))},
    "busy": {"marker": "o", "ms": 7, "mew": 1.6, "mfc": CARD},
    "stop": {"marker": "o", "ms": 7, "mew": 2, "mfc": CARD},
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
FAR = 99.0  # times the height of the plot
STEPS = 8  # from point to point on linear axes, where the way is that of a power of x
Layout = tuple[float, float, float, float]  # width and height, most of a name's line, text size
LAYOUTS: Mapping[tuple[Width, int], Layout] = {
    ("wide", 1): (632, 260, 150, 13),
    ("wide", 2): (574, 200, 130, 13),
}
NARROW: Layout = (326, 190, 104, 14)
Label = list[tuple[str, bool]]  # lines of text, whether they are the name
Labels = dict[str, Label]


def draw(
    figure: Figure, places: Places, width: Width, new_sheet: Callable[[float], Sheet] = Sheet
) -> list[Sheet]:
    """Each panel."""
    layout = LAYOUTS.get((width, len(figure.panels)), NARROW)
    names = [{one.backend for one in panel.series} for panel in figure.panels]
    labels: list[Labels] = [{} for _ in names]  # the axis or the title names a line alone
    if any(len(some) > 1 or some & places.keys() for some in names):
        labels = [_labels(panel, layout) for panel in figure.panels]
    lines = [line for some in labels for label in some.values() for line in label]
    room = widest((words for words, is_name in lines if is_name), 14, "bold")
    room = max(room, widest((words for words, is_name in lines if not is_name), layout[3]))
    room += LISTED_PX * any(len(some) > MOST_LED for some in labels)
    right = layout[0] - (room + 1.5 * GAP if lines else 2 * INSET)
    tall = max(layout[1], *(sum(map(_tall, some.values())) for some in labels))
    sheets = [new_sheet(layout[0]) for _ in names]
    for panel, some, sheet in zip(figure.panels, labels, sheets, strict=True):
        _Drawing(figure, panel, places, sheet, (right, tall, layout[3])).draw(some)
    return sheets


def _labels(panel: Panel, layout: Layout) -> Labels:
    *_, most, size = layout
    found = {}
    for name, mine in by(panel.series, lambda one: one.backend).items():
        ending = next((one.ending for one in mine if one.ending), "")
        below = wrapped(ending, most, size, "normal")
        found[name] = [
            *((line, True) for line in wrapped(name, most)),
            *((line, False) for line in below),
        ]
    return found


def _tall(label: Label) -> float:
    return LINE_PX * len(label) + 3


class _Point(NamedTuple):
    """A value of a series, and where it is drawn, in pixels."""

    of: Series
    place: int
    across: float
    down: float

    @property
    def x(self) -> float:
        return self.of.x[self.place]

    @property
    def is_busy(self) -> bool:
        return bool(self.of.busy and self.of.busy[self.place])

    def said(self, unit: Unit) -> str:
        """`sdpa 3.2 ms (3.1 ms to 3.3 ms)`."""
        one, place = self.of, self.place
        y = one.y[place]
        low, high = (some[place] if some else None for some in (one.low, one.high))
        beyond = beyond_text(y) if y is not None and unit == "share" else ""
        value = Quantity(y, unit, low, high, note=beyond)
        if one.kind in CROSSED:
            why = one.why or CROSSES[unit == "bytes"]
            return f"{one.backend} {why}" if y is None else f"{one.backend} {value}, {why}"
        busy = f", {BUSY}" if self.is_busy else ""
        how = ", by formula" if one.kind == "formula" else ""
        return f"{one.backend} {value}{one.notes[place] if one.notes else ''}{how}{busy}"


class _Drawing:
    """A panel on its sheet: the plot begins at the left, below its headings."""

    def __init__(
        self,
        figure: Figure,
        panel: Panel,
        places: Places,
        sheet: Sheet,
        measures: tuple[float, float, float],
    ) -> None:
        """`measures`: where the plot ends at the right, how tall it is, the size of text."""
        self.figure, self.panel, self.places, self.sheet = figure, panel, places, sheet
        self.right, tall, self.size = measures
        compared = figure.panels if figure.same_y else (panel,)
        alike = [one for one in compared if (one.unit, one.y_scale) == (panel.unit, panel.y_scale)]
        limits, above = y_limits(alike), CROSS_PX * max(map(_without_value, compared))
        self.y_limits = widened(limits, panel.y_scale, 0, above / tall)
        self.ticks = y_ticks(limits, panel.y_scale, panel.unit, tall)
        self.left = widest((words for _, words in self.ticks), self.size) + GAP
        self.titles = wrapped(panel.title, sheet.width)
        self.top = 17.0 * len(self.titles) + 26
        self.bottom = self.top + tall + above
        shared = every_x(one for one in figure.panels if one.x_label == panel.x_label)
        inset = INSET / (self.right - self.left - 2 * INSET)
        self.x_limits = widened(x_limits(shared, panel.x_scale), panel.x_scale, inset, inset)
        self.box = (self.left, self.top, self.right - self.left, tall + above)
        self.points = list(self._points())

    def draw(self, labels: Labels) -> None:
        below = self._frame()
        self._line()
        for place, one in enumerate(self.panel.series):
            if one.kind not in CROSSED:
                self._band(one)
                self._way(place, one)
        self._marks()
        if self.panel is self.figure.panels[0]:
            below = self._keys(below)
        self._names(labels)
        self._strips()
        self.sheet.height = below + 4

    def at(self, x: float, y: float) -> tuple[float, float]:
        """In pixels of the sheet; far beyond the plot it is no matter where."""
        left, top, wide, tall = self.box
        across = share_of(x, self.x_limits, self.panel.x_scale)
        up = share_of(y, self.y_limits, self.panel.y_scale)
        return left + across * wide, top + (1 - min(max(up, -FAR), FAR)) * tall

    def within(self, x: float, y: float) -> tuple[float, float]:
        """The same; above and below the plot at its edge."""
        return self.at(x, min(max(y, self.y_limits[0]), self.y_limits[1]))

    def _points(self) -> Iterator[_Point]:
        """Of values that are numbers. Crosses without one stand at the upper edge, below each
        other.
        """
        above: Counter[float] = Counter()
        for one in self.panel.series:
            for place, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
                across, down = self.within(x, self.y_limits[1] if y is None else y)
                if one.kind in CROSSED:
                    down = max(down, self.top + 7.5) + CROSS_PX * above[x] * (y is None)
                    above[x] += y is None
                if isfinite(across) and (one.kind in CROSSED or (y is not None and isfinite(y))):
                    yield _Point(one, place, across, down)

    def colour(self, name: str, of: str = "b") -> str:
        return COLOURS[f"{of}{tone(name, self.places)}"]

    # ---- axes ------------------------------------------------------------------------------------

    def _frame(self) -> float:
        """Titles and ticks; where the words end."""
        sheet, size, bottom = self.sheet, self.size, self.bottom
        for place, words in enumerate(self.titles):
            sheet.name(0, 14 + 17 * place, words)
        sheet.text(0, self.top - 11, self.panel.y_label, size=size)
        for tick, words in self.ticks:
            _, y = self.at(self.x_limits[0], tick)
            sheet.text(self.left - GAP, y + 4.5, words, size=size, ha="right")
        self._across([tick for tick, _ in self.ticks], GRID, zorder=-1)

        def across(x: float) -> float:
            return self.at(x, self.y_limits[0])[0]

        xs = every_x([self.panel])
        ticks = x_ticks(self.x_limits, self.panel.x_scale, xs, across, size)
        for tick, words in ticks:
            sheet.text(across(tick), bottom + 18, words, size=size, ha="center")
        xs = [at for tick, _ in ticks for at in (across(tick), across(tick), nan)]
        sheet.line(xs, [bottom, bottom + 4, nan] * len(ticks), MUTE, lw=1)
        self._across([self.y_limits[0]], MUTE)
        below = wrapped(self.panel.x_label, self.right, size, "normal")
        for place, words in enumerate(below):
            sheet.text(self.right, bottom + 36 + 16 * place, words, size=size, ha="right")
        return bottom + 20 + 16 * len(below)

    def _across(self, values: Sequence[float], color: str, **look: Any) -> None:
        """Lines from side to side."""
        ys = [at for value in values for at in (self.at(self.x_limits[0], value)[1],) * 2 + (nan,)]
        self.sheet.line([self.left, self.right, nan] * len(values), ys, color, **{"lw": 1, **look})

    def _line(self) -> None:
        """A line across; of bytes it is a limit, and what is above does not fit."""
        value, words = self.panel.line or (nan, "")
        if not self.y_limits[0] < value < self.y_limits[1]:
            return
        y = self.at(self.x_limits[0], value)[1]
        if self.panel.unit != "bytes":
            wide = {"lw": 5, "alpha": 0.35} if self.panel.wide_line else {}
            self._across([value], MUTE, zorder=0, **wide)
            if words:
                self.sheet.text(self.left + 4, y - 5, words, size=self.size, halo=True)
            return
        left, top, wide_px, _ = self.box
        self.sheet.box((left, top, wide_px, y - top), fc=ZONE, lw=0, zorder=-2)
        self._across([value], WALL, lw=1.5, zorder=0)
        room = self.right - text_width(self.panel.y_label, self.size) - 2 * GAP
        said = (f"does not fit in {words}", "does not fit", "")
        shown = next(one for one in said if text_width(one, self.size) <= room)
        self.sheet.text(self.right, self.top - 11, shown, WALL, self.size, ha="right")

    # ---- lines -----------------------------------------------------------------------------------

    def _band(self, one: Series) -> None:
        """The intervals: between lines through their ends, or a bar at a single point."""
        ends = enumerate(zip(one.low, one.high, strict=True))
        found = [
            (at, one.x[at], low, high)
            for at, (low, high) in ends
            if low is not None and high is not None and isfinite(low) and isfinite(high)
        ]
        look: dict[str, Any] = {"alpha": 0.2, "zorder": 1}
        for _, run in groupby(enumerate(found), key=lambda at: at[1][0] - at[0]):
            points = [point for _, (_, *point) in run]
            lower = [self.within(x, low) for x, low, _ in points]
            upper = [self.within(x, high) for x, _, high in points]
            if len(points) == 1:
                lower, upper = ([(x - 3, y), (x + 3, y)] for ((x, y),) in (lower, upper))
            self.sheet.area([*lower, *reversed(upper)], self.colour(one.backend), **look)

    def _way(self, place: int, one: Series) -> None:
        """The axes cut it where it leaves them."""
        xs: Sequence[float] = one.x
        ys: Sequence[float] = [nan if y is None else y for y in one.y]
        if self.panel.unit == "bytes" and self.panel.x_scale == "linear":
            xs, ys = _bent(xs), _bent(ys)
        places = [self.at(x, y) for x, y in zip(xs, ys, strict=True)]
        look = COVERED[self._covered(place)]
        if one.kind == "formula" and any(other.kind == "measured" for other in self.panel.series):
            look = LOOKS["formula"]
        xs, ys = zip(*places, strict=True)
        self.sheet.line(xs, ys, self.colour(one.backend), self.box, **look)

    def _covered(self, place: int) -> int:
        """By how many lines drawn later this one is hidden."""
        mine, *later = (
            {point.x: point.down for point in self.points if point.of is one}
            for one in self.panel.series[place:]
            if one.kind == "measured" or one is self.panel.series[place]
        )
        near = [
            sum(abs(there.get(x, inf) - y) <= SAME_PX for x, y in mine.items()) for there in later
        ]
        return min(sum(2 * count > len(mine) for count in near), len(COVERED) - 1)

    def _marks(self) -> None:
        for one in self.panel.series:
            colour, points = self.colour(one.backend), [at for at in self.points if at.of is one]
            shape = {"marker": marker(one.backend, self.places)}
            if one.kind in CROSSED:
                self._mark(points, mec=colour, **LOOKS[one.kind])
            elif one.kind == "measured" and len(points) <= MOST_MARKS:
                self._mark([at for at in points if not at.is_busy], **shape)
                self._mark([at for at in points if at.is_busy], **{**LOOKS["busy"], **shape})
            for of, place, x, _ in points if one.kind in CROSSED else ():
                if (of.y[place] or 0) > self.y_limits[1]:  # it is further up
                    tip = (self.top - 1, self.top - 5, self.top - 1)
                    self.sheet.line((x - 4, x, x + 4), tip, colour, lw=2)
            if one.stop is not None and self.panel.line is not None:
                x, y = self.within(one.stop, self.panel.line[0])
                self.sheet.marks([x], [y], colour, **LOOKS["stop"])

    def _mark(self, points: Sequence[_Point], **look: Any) -> None:
        if points:
            xs, ys = [at.across for at in points], [at.down for at in points]
            self.sheet.marks(xs, ys, self.colour(points[0].of.backend), **look)

    # ---- words -----------------------------------------------------------------------------------

    def _keys(self, below: float) -> float:
        """What marks mean that are no backend's, in lines that fit; where they end."""
        panels = self.figure.panels
        keys: dict[str, str] = {}
        for panel in reversed(panels):
            kinds = {one.kind for one in panel.series}
            keys |= {kind: panel.crosses(kind) for kind in CROSSED if kind in kinds}
            keys |= {"formula": "formula"} if kinds >= {"formula", "measured"} else {}
            keys |= {"busy": BUSY} if any(any(one.busy) for one in panel.series) else {}
        x = self.sheet.width
        for kind in (kind for kind in LOOKS if kind in keys):
            wide = 18 + text_width(keys[kind], self.size)
            if x + wide > self.sheet.width:
                x, below = 0.0, below + 20
            xs = (x, x + 14) if kind == "formula" else (x + 6,)
            self.sheet.line(xs, [below - 6] * len(xs), MUTE, **LOOKS[kind])
            self.sheet.text(x + 18, below - 1.5, keys[kind], size=self.size)
            x += wide + 14
        return below

    def _names(self, labels: Labels) -> None:
        """At the ends of lines, one below the other; of many lines in their order."""
        ends: dict[str, _Point] = {}
        for point in sorted(self.points, key=lambda at: (at.of.kind not in CROSSED, at.across)):
            ends[point.of.backend] = point
        names = [name for name in labels if name in ends]
        sizes = [_tall(labels[name]) for name in names]
        listed = len(names) > MOST_LED
        wanted = [self.top - 8 if listed else ends[name].down - 10 for name in names]
        tops = spread(wanted, sizes, self.top - 8, self.bottom + 6)
        for name, top in zip(names, tops, strict=True):
            _, _, x, y = ends[name]
            left = self.right + GAP + LISTED_PX * listed
            if listed:
                shape = {"marker": marker(name, self.places)}
                self.sheet.marks([left - LISTED_PX + 4], [top + 8.5], self.colour(name), **shape)
            elif abs(top + 8 - y) > 9 or self.right - x > INSET + 1:
                self.sheet.line((x + 5, left - 3), (y, top + 8), self.colour(name), lw=1, alpha=0.6)
            for place, (words, is_name) in enumerate(labels[name]):
                below = top + 13 + LINE_PX * place
                if is_name:
                    self.sheet.name(left, below, words, self.colour(name, "t"))
                else:
                    self.sheet.text(left, below, words, size=self.size)

    def _strips(self) -> None:
        """What is said at each x, from the uppermost value down."""
        known = {(at.of.backend, at.x) for at in self.points if at.of.kind != "formula"}
        shown = [
            at
            for at in sorted(self.points, key=lambda at: at.down)
            if at.of.kind != "formula" or (at.of.backend, at.x) not in known
        ]
        places = sorted({at.x: at.across for at in shown}.items())
        places = places if len(places) <= MOST_STRIPS else []
        middles = [(one + other) / 2 for (_, one), (_, other) in pairwise(places)]
        label = self.panel.x_label.partition(" (")[0]
        ends = pairwise([self.left, *middles, self.right])
        for (x, _), (start, end) in zip(places, ends, strict=len(places) > 0):
            where = count_text(x) if x == int(x) else number_text(x)
            said = (at.said(self.panel.unit) for at in shown if at.x == x)
            box = (start, self.top, end - start, self.bottom - self.top)
            self.sheet.title(box, "\n".join([f"{label} = {where}", *said]))


def _bent(values: Sequence[float]) -> list[float]:
    """With more points between each two: a power of x stays one."""
    between = (np.geomspace(one, other, STEPS, endpoint=False) for one, other in pairwise(values))
    return [*(float(value) for some in between for value in some), values[-1]]


def _without_value(panel: Panel) -> int:
    """The most crosses at one x that have no value, and so are drawn above all others."""
    crossed = (one for one in panel.series if one.kind in CROSSED)
    xs = Counter(x for one in crossed for x, y in zip(one.x, one.y, strict=True) if y is None)
    return max(xs.values(), default=0)
