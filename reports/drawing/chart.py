"""Draws the panels of a figure, each as a picture of its own: lines with bands over a size.

Names stand at the ends of lines, with what the figure says there. Panels that are compared have the
same axes. A strip around each x says all values there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from math import isfinite

from ..elements import CROSSES, Figure, Panel, Series
from ..formatting import beyond_text, count_text, number_text
from ..quantity import Quantity
from .chart_axes import Axis, every_x, x_ticks
from .chart_frame import (
    LABEL_GAP,
    LAYOUTS,
    LINE_PX,
    NAME_PX,
    TICK_GAP,
    Frame,
    Layout,
    block_of,
    by_name,
)
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
RADIUS = 3.6
SAME_PX = 1.5  # lines nearer than that look like one
MOST_STRIPS = 80
MOST_MARKS = 32  # of a line; more would cover it
COVERED = 3  # classes u-1 to u-3: the more lines cover a line, the wider it is


def draw(figure: Figure, places: Places, width: Width, cases: Mapping[str, int]) -> list[str]:
    """SVG of each panel. `cases`: the number of each case on the page."""
    layout = LAYOUTS.get((width, len(figure.panels))) or LAYOUTS["narrow", 0]
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

    def y(self, value: float) -> float:
        return self.top + self.frame.y.at(value)

    @property
    def x_axis(self) -> Axis:
        ends = (self.left + INSET, self.right - INSET)
        return Axis(self.panel.x_scale, *self.frame.x_limits, *ends)

    def svg(self, width: Width) -> str:
        keys = self._keys()
        body = [self._grid(), self._line(), *map(self._band, self.panel.series)]
        body += [self._way(place, one) for place, one in enumerate(self.panel.series)]
        body += [self._marks(place, one) for place, one in enumerate(self.panel.series)]
        labels = self._labels() if _are_named(self.figure, self.places) else ""
        body += [keys, labels, self._strips()]
        height = self._below + 4 + (20 if keys else 0)
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
        if self.panel.line is None:
            return ""
        value, words = self.panel.line
        y = self.y(value)
        if self.panel.unit != "bytes":
            shown = line(self.left, y, self.right, y, "one")
            return shown + (text(self.left + 4, y - 5, words, "src halo") if words else "")
        zone = rect(self.left, self.top, self.right - self.left, y - self.top, "zone")
        said = text(self.left + 7, min(y - 5, self.top + 14), f"does not fit in {words}", "bl halo")
        return zone + line(self.left, y, self.right, y, "bud") + said

    def _keys(self) -> str:
        """What marks mean that are no backend's."""
        y, x, parts = self._below + 14, 0.0, []
        keys = []
        if self._has("failed"):
            keys.append((cross(6, y, "x", hollow=False), self.panel.crosses))
        if self._has("formula") and self._has("measured"):
            keys.append((line(0, y, 14, y, "ln fm s-x"), "by formula"))
        if any(any(one.busy) for one in self.panel.series):
            keys.append((mark(0, 6, y, RADIUS, "busy s-x"), "while other work ran"))
        for sign, words in keys:
            moved = f'<g transform="translate({x:.0f} 0)">{sign}</g>'
            parts.append(moved + text(x + 18, y + 4.5, words, "tk"))
            x += 18 + text_width(words, self.layout.text_px) + 14
        return "".join(parts)

    def _has(self, kind: str) -> bool:
        return any(one.kind == kind for one in self.panel.series)

    # ---- lines -----------------------------------------------------------------------------------

    def _points(self, one: Series) -> list[tuple[int, float, float]]:
        """Of values that are numbers: the place in the series, and where it is drawn."""
        axis = self.x_axis
        return [
            (place, axis.at(x), self.y(y))
            for place, (x, y) in enumerate(zip(one.x, one.y, strict=True))
            if y is not None and isfinite(y) and isfinite(x)
        ]

    def _runs(self, one: Series) -> Iterator[list[tuple[int, float, float]]]:
        """Points without a gap between them."""
        numbered = enumerate(self._points(one))
        for _, run in groupby(numbered, key=lambda found: found[1][0] - found[0]):
            yield [found for _, found in run]

    def _band(self, one: Series) -> str:
        """The intervals: between lines through their ends, or a bar at a single point."""
        if one.kind == "failed" or not (one.low and one.high):
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
        if one.kind == "failed":
            return ""
        covered = self._covered(place) if one.kind == "measured" else 0
        classes = f"ln s-{tone(one.backend, self.places)}"
        classes += f" u-{covered}" if covered else " tr" if one.kind == "trace" else ""
        classes += " fm" if one.kind == "formula" and self._has("measured") else ""
        ways = ([(x, y) for _, x, y in run] for run in self._runs(one))
        return "".join(path(way, classes) for way in ways if len(way) > 1)

    def _marks(self, place: int, one: Series) -> str:
        number = tone(one.backend, self.places)
        if one.kind == "failed":
            return "".join(cross(x, y, number, hollow=False) for _, x, y in self._failed(one))
        if one.kind != "measured":
            return ""
        points, parts = self._points(one), []
        for at, x, y in points if len(points) <= MOST_MARKS else ():
            busy = at < len(one.busy) and one.busy[at]
            classes = f"busy s-{number}" if busy else f"f-{number}"
            parts.append(mark(shape(one.backend, self.places), x, y, RADIUS, classes))
        return "".join(parts)

    def _failed(self, one: Series) -> list[tuple[int, float, float]]:
        """Those without y stand at the upper edge, several at one x below each other."""
        found = []
        before = self.panel.series[: self.panel.series.index(one)]
        for place, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
            stacked = sum(
                other.kind == "failed" and other.y[at] is None and other.x[at] == x
                for other in before
                for at in range(len(other.x))
            )
            down = self.top + CROSS_PX + 2 + 2.3 * CROSS_PX * stacked
            found.append((place, self.x_axis.at(x), down if y is None else self.y(y)))
        return found

    # ---- words -----------------------------------------------------------------------------------

    def _labels(self) -> str:
        """Names at the ends of lines, one below the other."""
        room = self.layout.width - self.right
        ends, blocks, tones = [], [], []
        for name, mine in by_name(self.panel):
            solid = [one for one in mine if one.kind != "failed"]
            points = [found for one in solid for found in self._points(one)]
            points = points or [found for one in mine for found in self._failed(one)]
            if points:
                _, x, y = max(points, key=lambda found: found[1])
                ends.append((x, y))
                blocks.append(block_of(mine, room, self.layout))
                tones.append(tone(name, self.places))
        sizes = [len(block) * float(LINE_PX) + 3 for block in blocks]
        wanted = [y + size / 2 - 10 for (_, y), size in zip(ends, sizes, strict=True)]
        centres = spread(wanted, sizes, self.top - 8, self.bottom + 6)
        parts = []
        for (x, y), centre, size, block, number in zip(
            ends, centres, sizes, blocks, tones, strict=True
        ):
            at, up = self.right + LABEL_GAP - 4, centre - size / 2
            if abs(up + 8 - y) > 9 or self.right - x > INSET + 1:
                parts.append(line(x + 5, y, at - 3, up + 8, f"lead s-{number}"))
            for place, (words, is_name) in enumerate(block):
                classes = f"lb t-{number}" if is_name else "sub"
                parts.append(text(at, up + 13 + place * LINE_PX, words, classes))
        return "".join(parts)

    def _strips(self) -> str:
        """What is said at each x, from the uppermost value down."""
        found: dict[float, list[Value]] = {}
        for one in self.panel.series:
            if one.kind == "trace":
                continue
            places = self._failed(one) if one.kind == "failed" else self._points(one)
            for place, x, y in places:
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
        if one.kind == "failed":
            why = one.why or CROSSES[unit == "bytes"]
            return f"{one.backend} {why}" + (f", drawn at {value}" if y is not None else "")
        busy = ", while other work ran" if place < len(one.busy) and one.busy[place] else ""
        how = ", by formula" if one.kind == "formula" else ""
        return f"{one.backend} {value}{how}{busy}"
