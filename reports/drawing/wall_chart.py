"""Draws memory over N: a panel per number of heads, the budget and what lies beyond it.

Names stand at the ends of lines, and two slopes in place of a legend: what twice the length needs.
A drawing that has no room for a text leaves it out; the card's sentence and table have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from ..elements import SCALES, Scale, WallChart, WallLine, WallPoint
from ..formatting import bytes_text, count_text, length_text, size_text
from .marks import (
    BOLD_EM,
    CROSS_PX,
    Value,
    Width,
    at_x,
    coordinate,
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
    triangle,
    wrapped,
)
from .palette import Places, tone
from .wall_axes import LAYOUTS, Axes, Layout, axes_of, size_ticks
from .wall_lines import NAME_PX, Drawn, bundles_of, coincide, stop_words, stretches

OUT_OF_MEMORY = ("oom", "predicted_oom")
LINE_PX = 15  # from one line of text to the next
LABEL_LINES = 1.9  # of text that name a line and where it stops
RADIUS = 3.8
TOP = 26.0
MOST_MARKED = 2  # lines over a line whose marks are still drawn
MOST_NAMES = 4  # of lines that end at one place
LABEL_GAP, TICK_GAP = 12.0, 7.0
CLEARANCE_PX = 3.0  # between a text and a line
PIECES = 40  # in which a line is between two points, to find out what it crosses
Box = tuple[float, float, float, float]  # left, top, right, bottom


def draw(
    chart: WallChart, places: Places, width: Width, scale: Scale, cases: Mapping[str, int]
) -> str:
    """SVG text. `cases`: the number of each case on the page."""
    layout = LAYOUTS[width]
    lines = [one for _, some in chart.panels for one in some]
    names = name_room((one.backend for one in lines), NAME_PX, layout.most_label)
    others = [*map(stop_words, lines), "999.9 MiB"]
    least = max(text_width(part, layout.text_px, BOLD_EM) for part in others)
    label = max(least, names) + LABEL_GAP + 2
    rows_of_names = [
        sum(len(wrapped(one.backend, label - LABEL_GAP - 1, NAME_PX)) for one in some)
        for _, some in chart.panels
    ]
    most = LABEL_LINES * max(rows_of_names, default=1) * LINE_PX
    axes = axes_of(chart, lines, scale, max(layout.plot_height, most))
    across = 1 if layout.stacked else max(1, len(chart.panels))
    first = max(text_width(words, layout.text_px) for _, words in size_ticks(axes)) + TICK_GAP + 1
    plot = (layout.width - first - across * label - (across - 1) * layout.between) / across
    pitch = TOP + axes.height + (57 if layout.stacked else 43)
    body = []
    for place, (heading, some) in enumerate(chart.panels):
        row, column = (place, 0) if layout.stacked else (0, place)
        left = first + column * (plot + label + layout.between)
        body.append(
            _Panel(
                layout=layout,
                axes=axes,
                places=places,
                cases=cases,
                left=left,
                top=row * pitch + TOP,
                width=plot,
                label=label,
                budget=chart.budget_bytes,
            ).draw(heading, some, ticks=layout.stacked or column == 0, guides=place == 0)
        )
    rows = len(chart.panels) if layout.stacked else 1
    height = rows * pitch - (15 if layout.stacked else 0)
    described = f"{chart.description} Both axes are {SCALES[scale]}."
    return svg(layout.width, height, f"wall {width} {scale}", described, "".join(body))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """Where a panel lies: the plot's left and upper edge, its width, and that of its labels."""

    layout: Layout
    axes: Axes
    places: Places
    cases: Mapping[str, int]
    left: float
    top: float
    width: float
    label: float
    budget: int | None

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.axes.height

    def x(self, n: float) -> float:
        return self.axes.x(n, self.left, self.width)

    def y(self, size: float) -> float:
        return self.axes.y(size, self.top)

    def draw(self, heading: str, lines: Sequence[WallLine], *, ticks: bool, guides: bool) -> str:
        drawn = self._drawn(lines)
        bundles = bundles_of(drawn)
        parts = [text(self.left, self.top - 10, heading, "pt"), self._grid(ticks=ticks)]
        parts.append(self._zone_words(drawn))
        if guides and self.axes.scale == "log":
            parts += [self._guide(drawn, factor) for factor in (4, 2)]
        parts += [self._line(one) for one in sorted(drawn, key=lambda one: -one.covered)]
        parts += [self._stop(bundle[0].line) for bundle in bundles]
        parts += [self._labels(bundles), self._strips(lines)]
        return "".join(parts)

    # ---- axes ------------------------------------------------------------------------------------

    @property
    def edge(self) -> float | None:
        """The height of the budget, if it is within the plot."""
        edge = self.top if self.budget is None else self.y(self.budget)
        return edge if self.top < edge < self.bottom else None

    def _grid(self, *, ticks: bool) -> str:
        parts = []
        if self.edge is not None:
            parts.append(rect(self.left, self.top, self.width, self.edge - self.top, "zone"))
        for size, words in size_ticks(self.axes):
            y = self.y(size)
            parts.append(line(self.left, y, self.right, y, "gl"))
            if ticks:
                parts.append(text(self.left - TICK_GAP, y + 4.5, words, "tk", "end"))
        shown_lengths: list[int] = []
        least = max(text_width(count_text(n), self.layout.text_px) for n in self.axes.lengths) + 6
        for n in reversed(self.axes.lengths):
            if not shown_lengths or self.x(shown_lengths[-1]) - self.x(n) >= least:
                shown_lengths.append(n)
            elif self.axes.scale == "linear":
                break  # the shorter ones are nearer still
        if self.axes.scale == "linear":
            shown_lengths.append(0)
        for n in reversed(shown_lengths):
            x = self.x(n)
            parts.append(line(x, self.bottom, x, self.bottom + 4, "ax"))
            parts.append(text(x, self.bottom + 18, count_text(n), "tk", "middle"))
        parts.append(line(self.left, self.bottom, self.right, self.bottom, "ax"))
        parts.append(text(self.right, self.bottom + 36, "sequence length N", "tk", "end"))
        if self.edge is not None:
            parts.append(line(self.left, self.edge, self.right, self.edge, "bud"))
        return "".join(parts)

    def _is_free(self, box: Box, drawn: Sequence[Drawn]) -> bool:
        """Whether it lies within the plot, and no line and no mark within it."""
        left, top, right, bottom = box
        if left < self.left or right > self.right or top < self.top or bottom > self.bottom:
            return False
        pieces = (
            (x + (to_x - x) * piece / PIECES, y + (to_y - y) * piece / PIECES, not piece)
            for one in drawn
            for (x, y, _), (to_x, to_y, _) in pairwise([*one.places, *one.places[-1:]])
            for piece in range(PIECES)
        )
        return not any(
            left - by < x < right + by and top - by < y < bottom + by
            for x, y, marked in pieces
            for by in [CLEARANCE_PX + CROSS_PX * marked]
        )

    def _zone_words(self, drawn: Sequence[Drawn]) -> str:
        """What the zone means, if its corner is free."""
        if self.budget is None or self.edge is None:
            return ""
        left, top = self.left + 7, self.top + 4
        for words in (f"does not fit in {bytes_text(self.budget)}", "does not fit"):
            right = left + text_width(words, self.layout.text_px)
            bottom = top + LINE_PX
            if bottom < self.edge and self._is_free((left, top, right, bottom), drawn):
                return text(left, bottom - 3, words, "bl")
        return ""

    def _guide(self, drawn: Sequence[Drawn], factor: int) -> str:
        """A triangle: what twice the length needs if memory grows by this factor; "" without room.

        The steep one at the upper left with words above it, the other at the lower right.
        """
        if self.axes.lengths[-1] < 2 * self.axes.lengths[0]:
            return ""
        wide = self.x(2 * self.axes.lengths[0]) - self.left
        high = self.y(1) - self.y(factor)
        words = ("length ×2", f"memory ×{factor}")
        text_wide = max(text_width(one, self.layout.text_px) for one in words)
        edge = self.edge or self.top
        for below in (0.1, 0.05, 0.02) if factor == 4 else (0.0,):
            if factor == 4:
                left, top = self.left + 4, edge + below * (self.bottom - edge)
                up, text_left = top + 2 * LINE_PX + 4, left
            else:
                left = self.right - wide - 9 - text_wide
                up = self.bottom - 4 - max(high, LINE_PX + high / 2)
                top, text_left = up + high / 2 - LINE_PX, left + wide + 8
            middle = up + high / 2
            # the triangle is the wider half above it if it is steep, else below
            half = (left, up, left + wide, middle) if factor == 4 else None
            boxes = (
                (text_left, top, text_left + text_wide, top + 2 * LINE_PX),
                half or (left, middle, left + wide, up + high),
            )
            if all(self._is_free(box, drawn) for box in boxes):
                return triangle(left, up, wide, high, steep=factor == 4) + "".join(
                    text(text_left, top + 11 + place * LINE_PX, one, "gt")
                    for place, one in enumerate(words)
                )
        return ""

    # ---- lines -----------------------------------------------------------------------------------

    def _drawn(self, lines: Sequence[WallLine]) -> list[Drawn]:
        """What is at the end of the list is drawn last; what coincides with it is drawn wider."""
        found: list[Drawn] = []
        placed = [(one, self._places(one)) for one in lines]
        for number, (one, places) in enumerate(placed):
            covered = sum(coincide(one, other) for other, _ in placed[number + 1 :])
            found.append(Drawn(line=one, places=places, covered=covered))
        return found

    def _places(self, one: WallLine) -> tuple[tuple[float, float, WallPoint], ...]:
        found = []
        for point in one.points:
            size = point.need_bytes or self.budget
            if size is not None:
                y = max(self.y(size), self.top + CROSS_PX + 2)
                found.append((self.x(point.seq_len), y, point))
        return tuple(found)

    def _line(self, one: Drawn) -> str:
        number = self._tone(one.line)
        under = f" u-{min(one.covered, 3)}" if one.covered else ""
        parts = []
        known = [point for point in one.line.points if point.need_bytes]
        for solid, run in stretches(known):
            way = self._way(run)
            classes = f"ln s-{number}{'' if solid else ' dash'}{under}"
            parts.append(path(way, classes) if len(way) > 1 else "")
        radius = RADIUS * (1 + 0.7 * min(one.covered, 3))
        for x, y, point in one.places:
            if point.end == "ok" and one.covered <= MOST_MARKED:
                classes = f"f-{number}{' big' if one.covered else ''}"
                number_of = shape(one.line.backend, self.places)
                parts.append(mark(number_of, x, y, radius, classes))
            elif point.end in OUT_OF_MEMORY:
                parts.append(cross(x, y, number, hollow=point.end != "oom"))
                if point.need_bytes and self.y(point.need_bytes) < self.top:  # further up
                    tip = [(x - 4, self.top - 1), (x, self.top - 5), (x + 4, self.top - 1)]
                    parts.append(path(tip, f"tip-up s-{number}"))
        return "".join(parts)

    def _way(self, run: Sequence[WallPoint]) -> list[tuple[float, float]]:
        """The points of a line up to where it leaves the plot.

        On linear axes the way between two points is that of a power of N.
        """
        sizes = [(point.seq_len, point.need_bytes or 1) for point in run]
        shares = [step / 8 for step in range(8)] if self.axes.scale == "linear" else [0.0]
        way = [
            (self.x(n * (to_n / n) ** share), self.y(size * (to_size / size) ** share))
            for (n, size), (to_n, to_size) in pairwise(sizes)
            for share in shares
        ]
        way.append((self.x(sizes[-1][0]), self.y(sizes[-1][1])))
        inside = list(takewhile(lambda place: place[1] >= self.top, way))
        if not inside or len(inside) == len(way):
            return inside
        (x, y), (to_x, to_y) = inside[-1], way[len(inside)]
        share = (y - self.top) / (y - to_y)
        return [*inside, (x + share * (to_x - x), self.top)]

    def _strips(self, lines: Sequence[WallLine]) -> str:
        """What is needed at each N, the most first."""
        how = {"ok": "measured", "oom": "out of memory", "predicted_oom": "not tried"}
        found: dict[int, list[Value]] = {}
        for one in lines:
            for point in one.points:
                size = bytes_text(point.need_bytes) or "need not known"
                words = f"{one.backend} {size}, {how.get(point.end, 'by formula')}"
                case = self.cases.get(point.case or "")
                y = max(self.y(point.need_bytes or self.budget or 1), self.top)
                value = Value(words, y, self._tone(one), case)
                found.setdefault(point.seq_len, []).append(value)
        lengths = sorted(found)
        ends = strips([self.x(n) for n in lengths], self.left, self.right)
        parts = []
        for n, (start, end) in zip(lengths, ends, strict=True):
            said = sorted(found[n], key=lambda one: one.y)
            box = (start, self.top, end - start, self.axes.height)
            parts.append(at_x(box, self.x(n), f"N = {length_text(n)}", said))
        return "".join(parts)

    # ---- where lines end ------------------------------------------------------------------------

    def _stop(self, one: WallLine) -> str:
        """A circle on the budget line; a search may have found an N beyond those that are drawn."""
        first, last = self.axes.lengths[0], self.axes.lengths[-1]
        if self.edge is None or one.stop_n is None or not first <= one.stop_n <= last:
            return ""
        x, y = coordinate(self.x(one.stop_n)), coordinate(self.edge)
        return f'<circle class="stop s-{self._tone(one)}" cx="{x}" cy="{y}" r="3.4"/>'

    def _tone(self, one: WallLine) -> str:
        return tone(one.backend, self.places)

    def _labels(self, bundles: Sequence[Sequence[Drawn]]) -> str:
        """Names at the ends of lines, one below the other."""
        blocks = [self._block(bundle, self.label - LABEL_GAP - 2) for bundle in bundles]
        high = self.bottom + 4
        if sum(len(block) * LINE_PX for block in blocks) > high - self.top:
            blocks = [[entry for entry in block if entry[1].startswith("lb")] for block in blocks]
        sizes = [len(block) * float(LINE_PX) + 3 for block in blocks]
        ends = [bundle[0].places[-1] for bundle in bundles]
        wanted = [
            y + size / 2 - 10 for (_, y, _), size in zip(ends, sizes, strict=True)
        ]  # the first line beside the line's end
        parts = []
        for centre, size, block, (x, y, _), bundle in zip(
            spread(wanted, sizes, self.top - 8, high), sizes, blocks, ends, bundles, strict=True
        ):
            at, top = self.right + LABEL_GAP, centre - size / 2
            if abs(top + 8 - y) > 9 or self.right - x > 8:
                number = self._tone(bundle[0].line)
                parts.append(line(x + 5, y, at - 3, top + 8, f"lead s-{number}"))
            for place, (words, classes) in enumerate(block):
                parts.append(text(at, top + 13 + place * LINE_PX, words, classes))
        return "".join(parts)

    def _block(self, bundle: Sequence[Drawn], room: float) -> list[tuple[str, str]]:
        """Lines of text with their classes: names, then where they stop or what they need."""
        shown = bundle if len(bundle) <= MOST_NAMES else bundle[: MOST_NAMES - 1]
        entries = [
            (part, f"lb t-{self._tone(one.line)}")
            for one in shown
            for part in wrapped(one.line.backend, room + 1, NAME_PX)
        ]
        if len(shown) < len(bundle):
            entries.append((f"+ {len(bundle) - len(shown)} more", "lb"))
        last = bundle[0].line
        if stop := stop_words(last):
            verb = "stops at" if len(bundle) == 1 else "stop at"
            return [*entries, (verb, "sub"), (stop, f"sub t-{self._tone(last)} wl")]
        size = size_text(last.points[-1].need_bytes)
        return [*entries, (size, "sub")] if size else entries
