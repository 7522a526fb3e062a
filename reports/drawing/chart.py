"""Draws the panels of a figure, each as a picture of its own: lines with bands over a size.

Names stand at the ends of lines, with what the figure says there. Panels that are compared have the
same axes. A strip around each x says all values there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, takewhile
from math import isfinite

from ..elements import CROSSES, Figure, Panel, Series
from ..formatting import beyond_text, count_text, number_text
from ..quantity import Quantity
from .chart_axes import Axis, every_x, x_ticks
from .chart_frame import (
    CROSSED,
    LABEL_GAP,
    LAYOUTS,
    LINE_PX,
    NAME_PX,
    TICK_GAP,
    WALLS,
    Frame,
    Layout,
    labels_of,
)
from .chart_guides import RADIUS, Room, by_formula, keys_of
from .marks import (
    CROSS_PX,
    TEXT_EM,
    Value,
    Width,
    area,
    at_x,
    cross,
    line,
    mark,
    name_room,
    path,
    rect,
    shape,
    spread,
    strips,
    svg,
    text,
    text_width,
    wrapped,
)
from .palette import Places, tone

INSET = 8.0  # of the first and last x from the plot's edges
STOP_PX = 3.4
SAME_PX = 1.5  # lines nearer than that look like one
MOST_STRIPS = 80
MOST_MARKS = 32  # of a line; more would cover it
COVERED = 3  # classes u-1 to u-3: the more lines cover a line, the wider it is
STEPS = 8  # from point to point on linear axes, where the way is that of a power of x


def draw(figure: Figure, places: Places, width: Width, cases: Mapping[str, int]) -> list[str]:
    """SVG of each panel. `cases`: the number of each case on the page."""
    layouts = WALLS if figure.both_scales else LAYOUTS
    layout = layouts.get((width, len(figure.panels))) or layouts["narrow", 0]
    every = [one for panel in figure.panels for one in panel.series]
    names = name_room((one.backend for one in every), NAME_PX, layout.name)
    endings = name_room((one.ending for one in every), layout.text_px, layout.name, TEXT_EM)
    label = max(names, endings) + LABEL_GAP if _are_named(figure, places) else 2 * INSET
    frames = [Frame.of(figure, panel, layout, label) for panel in figure.panels]
    left = max(one.tick_room for one in frames) if figure.same_y else 0.0
    return [
        _Drawn(
            figure=figure,
            panel=panel,
            frame=frame,
            layout=layout,
            places=places,
            cases=cases,
            left=left or frame.tick_room,
            right=layout.width - label,
        ).svg(width)
        for panel, frame in zip(figure.panels, frames, strict=True)
    ]


def _are_named(figure: Figure, places: Places) -> bool:
    """Not if each panel has one line, which is no backend's: the axis or the title names it."""
    names = [{one.backend for one in panel.series} for panel in figure.panels]
    return any(len(some) > 1 or some & places.keys() for some in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """A panel with its place: the plot begins at the left, below its headings."""

    figure: Figure
    panel: Panel
    frame: Frame
    layout: Layout
    places: Places
    cases: Mapping[str, int]
    left: float
    right: float

    @property
    def titles(self) -> list[str]:
        return wrapped(self.panel.title, self.layout.width, NAME_PX) if self.panel.title else []

    @property
    def top(self) -> float:
        return 17.0 * len(self.titles) + 26

    @property
    def bottom(self) -> float:
        return self.top + self.frame.y.start

    @property
    def y_axis(self) -> Axis:
        y = self.frame.y
        return replace(y, start=self.top + y.start, end=self.top + y.end)

    def y(self, value: float) -> float:
        return self.y_axis.at(value)

    @property
    def x_axis(self) -> Axis:
        ends = (self.left + INSET, self.right - INSET)
        return Axis(self.panel.x_scale, *self.frame.x_limits, *ends)

    def svg(self, width: Width) -> str:
        below = self._below
        is_first = self.panel is self.figure.panels[0]
        keys = keys_of(self.figure, self.layout, below) if is_first else []
        body = [self._grid(), self._line(), *map(self._band, self.panel.series)]
        body += [self._way(place, one) for place, one in enumerate(self.panel.series)]
        body += [self._marks(one) for one in self.panel.series]
        labels = self._labels() if _are_named(self.figure, self.places) else ""
        body += [*keys, labels, self._strips()]
        height = below + 4 + 20 * len(keys)
        described = self.figure.description(self.panel)
        return svg(self.layout.width, height, f"chart {width}", described, "".join(body))

    # ---- axes ------------------------------------------------------------------------------------

    def _grid(self) -> str:
        parts = [text(0, 14 + 17 * place, one, "pt") for place, one in enumerate(self.titles)]
        said = wrapped(self.panel.y_label, self.layout.width, self.layout.text_px, TEXT_EM)
        parts.append(text(0, self.top - 11, said[0], "tk"))
        for tick, words in self.frame.ticks:
            y = self.y(tick)
            parts.append(line(self.left, y, self.right, y, "gl"))
            parts.append(text(self.left - TICK_GAP, y + 4.5, words, "tk", "end"))
        axis = self.x_axis
        for tick, words in x_ticks(axis, every_x([self.panel]), self.layout.text_px):
            x = axis.at(tick)
            parts.append(line(x, self.bottom, x, self.bottom + 4, "ax"))
            parts.append(text(x, self.bottom + 18, words, "tk", "middle"))
        parts.append(line(self.left, self.bottom, self.right, self.bottom, "ax"))
        for place, words in enumerate(self._x_label):
            parts.append(text(self.right, self.bottom + 36 + 16 * place, words, "tk", "end"))
        return "".join(parts)

    @property
    def _x_label(self) -> list[str]:
        return wrapped(self.panel.x_label, self.right, self.layout.text_px, TEXT_EM)

    @property
    def _below(self) -> float:
        """Where the last line of the label of x ends."""
        return self.bottom + 20 + 16 * len(self._x_label)

    def _line(self) -> str:
        """A line across; of bytes it is a limit, and what is above does not fit."""
        limit = self.panel.line
        y = None if limit is None else self.y_axis.at(limit[0], clipped=False)
        if limit is None or y is None or not self.top < y < self.bottom:
            return ""
        words = limit[1]
        if self.panel.unit != "bytes":
            shown = line(
                self.left, y, self.right, y, "one thick" if self.panel.wide_line else "one"
            )
            return shown + (text(self.left + 4, y - 5, words, "src halo") if words else "")
        zone = rect(self.left, self.top, self.right - self.left, y - self.top, "zone")
        zone += line(self.left, y, self.right, y, "bud")
        room = Room((self.left, self.top, self.right, self.bottom), self._ways)
        left, top = self.left + 7, self.top + 4
        for said in (f"does not fit in {words}", "does not fit"):
            right = left + text_width(said, self.layout.text_px)
            if top + LINE_PX < y and room.is_free((left, top, right, top + LINE_PX)):
                return zone + text(left, top + LINE_PX - 3, said, "bl")
        return zone

    # ---- lines -----------------------------------------------------------------------------------

    def _points(self, one: Series) -> list[tuple[int, float, float]]:
        """Of values that are numbers: the place in the series, and where it is drawn."""
        axis = self.x_axis
        return [
            (place, axis.at(x), self.y(y))
            for place, (x, y) in enumerate(zip(one.x, one.y, strict=True))
            if y is not None and isfinite(y) and isfinite(x)
        ]

    @property
    def _ways(self) -> list[list[tuple[float, float]]]:
        return [
            self._inside(one, run)
            for one in self.panel.series
            if one.kind not in CROSSED
            for run in self._runs(one)
        ]

    def _runs(self, one: Series) -> Iterator[list[tuple[int, float, float]]]:
        """Points without a gap between them."""
        numbered = enumerate(self._points(one))
        for _, run in groupby(numbered, key=lambda found: found[1][0] - found[0]):
            yield [found for _, found in run]

    def _band(self, one: Series) -> str:
        """The intervals: between lines through their ends, or a bar at a single point."""
        if one.kind in CROSSED or not (one.low and one.high):
            return ""
        parts, classes = [], f"iv f-{tone(one.backend, self.places)}"
        for run in self._runs(one):
            ends = [
                (x, self.y(low), self.y(high))
                for place, x, _ in run
                for low, high in [(one.low[place], one.high[place])]
                if low is not None and high is not None and isfinite(low) and isfinite(high)
            ]
            if len(ends) == 1:
                ((x, low_y, high_y),) = ends
                parts.append(rect(x - 3, high_y, 6, max(low_y - high_y, 1), classes))
            elif ends:
                upper, lower = ([(x, y) for x, y, _ in ends], [(x, y) for x, _, y in ends])
                parts.append(area([*upper, *reversed(lower)], classes))
        return "".join(parts)

    def _covered(self, place: int) -> int:
        """By how many lines drawn later this one is hidden."""
        mine = {x: y for _, x, y in self._points(self.panel.series[place])}
        count = 0
        for other in self.panel.series[place + 1 :]:
            there = {x: y for _, x, y in self._points(other)} if other.kind == "measured" else {}
            same = sum(x in there and abs(there[x] - y) <= SAME_PX for x, y in mine.items())
            count += bool(mine) and 2 * same > len(mine)
        return min(count, COVERED)

    def _way(self, place: int, one: Series) -> str:
        if one.kind in CROSSED:
            return ""
        covered = self._covered(place) if one.kind == "measured" else 0
        classes = f"ln s-{tone(one.backend, self.places)}"
        classes += f" u-{covered}" if covered else ""
        classes += " fm" if one.kind == "formula" and by_formula([self.panel]) else ""
        ways = (self._inside(one, run) for run in self._runs(one))
        return "".join(path(way, classes) for way in ways if len(way) > 1)

    def _inside(
        self, one: Series, run: list[tuple[int, float, float]]
    ) -> list[tuple[float, float]]:
        """A line up to where it leaves the plot at the top."""
        values = [(one.x[place], one.y[place] or 0.0) for place, _, _ in run]
        bent = self.figure.both_scales and self.panel.x_scale == "linear"
        shares = [step / STEPS for step in range(STEPS)] if bent else [0.0]
        way = [
            (x * (to_x / x) ** share, y * (to_y / y) ** share) if share else (x, y)
            for (x, y), (to_x, to_y) in pairwise(values)
            for share in shares
        ]
        x_axis, y_axis = self.x_axis, self.y_axis
        places = [(x_axis.at(x), y_axis.at(y, clipped=False)) for x, y in [*way, values[-1]]]
        inside = list(takewhile(lambda place: place[1] >= self.top - 0.1, places))
        if not inside or len(inside) == len(places):
            return inside
        (x, y), (to_x, to_y) = inside[-1], places[len(inside)]
        return [*inside, (x + (y - self.top) / (y - to_y) * (to_x - x), self.top)]

    def _marks(self, one: Series) -> str:
        number, parts = tone(one.backend, self.places), []
        if one.kind in CROSSED:
            for at, x, y in self._failed(one):
                parts.append(cross(x, y, number, hollow=one.kind == "untried"))
                value = one.y[at]
                if value and self.y_axis.at(value, clipped=False) < self.top - 0.1:  # further up
                    tip = [(x - 4, self.top - 1), (x, self.top - 5), (x + 4, self.top - 1)]
                    parts.append(path(tip, f"tip-up s-{number}"))
        if one.stop is not None and self.panel.line is not None:
            x, y = self.x_axis.at(one.stop), self.y(self.panel.line[0])
            parts.append(mark(0, x, y, STOP_PX, f"stop s-{number}"))
        points = self._points(one) if one.kind == "measured" else []
        for at, x, y in points if len(points) <= MOST_MARKS else ():
            busy = at < len(one.busy) and one.busy[at]
            classes = f"busy s-{number}" if busy else f"f-{number}"
            parts.append(mark(shape(one.backend, self.places), x, y, RADIUS, classes))
        return "".join(parts)

    def _failed(self, one: Series) -> list[tuple[int, float, float]]:
        """Those without y stand at the upper edge, several at one x below each other."""
        found, edge = [], self.top + CROSS_PX + 2
        before = self.panel.series[: self.panel.series.index(one)]
        for place, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
            stacked = sum(
                other.kind in CROSSED and other.y[at] is None and other.x[at] == x
                for other in before
                for at in range(len(other.x))
            )
            down = edge + 2.3 * CROSS_PX * stacked
            found.append((place, self.x_axis.at(x), down if y is None else max(self.y(y), edge)))
        return found

    # ---- words -----------------------------------------------------------------------------------

    def _labels(self) -> str:
        """Names at the ends of lines, one below the other."""
        labels, ends = [], []
        for label in labels_of(self.panel, self.layout.width - self.right, self.layout):
            solid = [one for one in label.series if one.kind not in CROSSED]
            points = [found for one in solid for found in self._points(one)]
            points = points or [found for one in label.series for found in self._failed(one)]
            if points:
                ends.append(max(points, key=lambda found: found[1])[1:])
                labels.append(label)
        sizes = [len(label.lines) * float(LINE_PX) + 3 for label in labels]
        wanted = [y + size / 2 - 10 for (_, y), size in zip(ends, sizes, strict=True)]
        centres = spread(wanted, sizes, self.top - 8, self.bottom + 6)
        parts = []
        for (x, y), centre, size, label in zip(ends, centres, sizes, labels, strict=True):
            at, up = self.right + LABEL_GAP - 4, centre - size / 2
            if abs(up + 8 - y) > 9 or self.right - x > INSET + 1:
                number = tone(label.series[0].backend, self.places)
                parts.append(line(x + 5, y, at - 3, up + 8, f"lead s-{number}"))
            for place, (words, name) in enumerate(label.lines):
                classes = f"lb t-{tone(name, self.places)}" if name else "sub"
                parts.append(text(at, up + 13 + place * LINE_PX, words, classes))
        return "".join(parts)

    def _strips(self) -> str:
        """What is said at each x, from the uppermost value down."""
        found: dict[float, list[Value]] = {}
        known = {
            (one.backend, x)
            for one in self.panel.series
            for x, y in zip(one.x, one.y, strict=True)
            if one.kind in CROSSED or (one.kind == "measured" and y is not None)
        }
        for one in self.panel.series:
            places = self._failed(one) if one.kind in CROSSED else self._points(one)
            for place, x, y in places:
                if one.kind == "formula" and (one.backend, one.x[place]) in known:
                    continue
                case = self.cases.get(one.cases[place]) if place < len(one.cases) else None
                value = Value(self._words(one, place), y, tone(one.backend, self.places), case)
                found.setdefault(x, []).append(value)
        if not 0 < len(found) <= MOST_STRIPS:
            return ""
        axis, xs = self.x_axis, sorted(found)
        heads = {axis.at(x): x for x in every_x([self.panel])}
        label = self.panel.x_label.partition(" (")[0]
        parts = []
        for x, (start, end) in zip(xs, strips(xs, self.left, self.right), strict=True):
            at = heads[x]
            where = count_text(at) if at == int(at) else number_text(at)
            said = sorted(found[x], key=lambda one: one.y)
            box = (start, self.top, end - start, self.bottom - self.top)
            parts.append(at_x(box, x, f"{label} = {where}", said))
        return "".join(parts)

    def _words(self, one: Series, place: int) -> str:
        """`sdpa 3.2 ms (3.1 ms to 3.3 ms)`."""
        y, unit = one.y[place], self.panel.unit
        ends = (one.low, one.high)
        low, high = (bounds[place] if place < len(bounds) else None for bounds in ends)
        beyond = beyond_text(y) if y is not None and unit == "share" else ""
        value = Quantity(y, unit, low, high, note=beyond)
        if one.kind in CROSSED:
            why = one.why or CROSSES[unit == "bytes"]
            return f"{one.backend} {why}" if y is None else f"{one.backend} {value}, {why}"
        busy = ", while other work ran" if place < len(one.busy) and one.busy[place] else ""
        how = ", by formula" if one.kind == "formula" else ""
        note = one.notes[place] if place < len(one.notes) else ""
        return f"{one.backend} {value}{note}{how}{busy}"
