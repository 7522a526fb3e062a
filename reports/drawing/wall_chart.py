"""Draws memory over N: a panel per number of heads, the budget and what lies beyond it.

Names stand at the ends of lines, and two slopes in place of a legend: what twice the length needs.
A drawing that has no room for a text leaves it out; the card's sentence and table have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from ..elements import Scale, WallChart, WallLine, WallPoint
from ..formatting import bytes_text, count_text, length_text, size_text
from .marks import (
    BOLD_EM,
    CROSS_PX,
    coordinate,
    cross,
    line,
    mark,
    path,
    rect,
    shape,
    spread,
    svg,
    text,
    text_width,
    tone,
    triangle,
)
from .obstacles import Box, Obstacles
from .wall_axes import LAYOUTS, Axes, Layout, Width, axes_of, size_ticks
from .wall_lines import (
    NAME_PX,
    Drawn,
    bundles_of,
    coincide,
    name_lines,
    steps,
    stop_words,
    stretches,
)

OUT_OF_MEMORY = ("oom", "predicted_oom")
LINE_PX = 15  # from one line of text to the next
LABEL_LINES = 1.9  # of text that name a line and where it stops
RADIUS = 3.8
TOP = 26.0
MOST_MARKED = 2  # lines over a line whose marks are still drawn
MOST_NAMES = 4  # of lines that end at one place
LABEL_GAP, TICK_GAP = 12.0, 7.0
FAR_PX = 40.0  # from the right end: a stop nearer than that is named by the line's label


def draw(chart: WallChart, backends: Sequence[str], width: Width, scale: Scale) -> str:
    """SVG text."""
    layout = LAYOUTS[width]
    lines = [one for _, some in chart.panels for one in some]
    names = max((text_width(one.backend, NAME_PX, BOLD_EM) for one in lines), default=0.0)
    others = [part for one in lines for part in stop_words(one) or ()] + ["999.9 MiB"]
    least = max(text_width(part, layout.text_px, BOLD_EM) for part in others)
    label = min(max(least, names), layout.most_label) + LABEL_GAP + 2
    most = max((len(some) for _, some in chart.panels), default=1)
    axes = axes_of(chart, lines, scale, max(layout.plot_height, most * LABEL_LINES * LINE_PX))
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
                backends=backends,
                left=left,
                top=row * pitch + TOP,
                width=plot,
                label=label,
                budget=chart.budget_bytes,
            ).draw(heading, some, ticks=layout.stacked or column == 0, guides=place == 0)
        )
    rows = len(chart.panels) if layout.stacked else 1
    height = rows * pitch - (15 if layout.stacked else 0)
    return svg(layout.width, height, f"wall {width} {scale}", chart.description, "".join(body))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """Where a panel lies: the plot's left and upper edge, its width, and that of its labels."""

    layout: Layout
    axes: Axes
    backends: Sequence[str]
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

    @property
    def inside(self) -> Box:
        return Box(self.left, self.top, self.right, self.bottom)

    def x(self, n: float) -> float:
        return self.axes.x(n, self.left, self.width)

    def y(self, size: float) -> float:
        return self.axes.y(size, self.top)

    def draw(self, heading: str, lines: Sequence[WallLine], *, ticks: bool, guides: bool) -> str:
        taken = Obstacles()
        drawn = self._drawn(lines)
        for one in drawn:
            taken.add_line([(x, y) for x, y, _ in one.places])
            taken.boxes += [Box(x, y, x, y).grown(CROSS_PX) for x, y, _ in one.places]
        parts = [text(self.left, self.top - 10, heading, "pt"), self._grid(taken, ticks=ticks)]
        bundles = bundles_of(drawn)
        stops, named = self._stops(bundles, taken)
        parts.append(self._zone_words(taken))
        if guides and self.axes.scale == "log":
            parts += [self._guide(taken, factor) for factor in (4, 2)]
        parts += [self._line(one) for one in sorted(drawn, key=lambda one: -one.covered)]
        parts += [stops, self._labels(bundles, named)]
        return "".join(parts)

    # ---- axes ------------------------------------------------------------------------------------

    def _grid(self, taken: Obstacles, *, ticks: bool) -> str:
        parts = []
        edge = None if self.budget is None else self.y(self.budget)
        if edge is not None and self.top < edge < self.bottom:
            parts.append(rect(self.left, self.top, self.width, edge - self.top, "zone"))
        else:
            edge = None
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
        if edge is not None:
            parts.append(line(self.left, edge, self.right, edge, "bud"))
            taken.add_line([(self.left, edge), (self.right, edge)])
        return "".join(parts)

    def _zone_words(self, taken: Obstacles) -> str:
        """What the zone means, in a corner of it that is free."""
        if self.budget is None or not self.top < (edge := self.y(self.budget)) < self.bottom:
            return ""
        for words in (f"does not fit in {bytes_text(self.budget)}", "does not fit"):
            wide = text_width(words, self.layout.text_px)
            tops = (self.top + 4, *steps(self.top + 4, edge - LINE_PX - 4))
            boxes = [
                Box(left, top, left + wide, top + LINE_PX)
                for top in tops
                for left in steps(self.left + 7, self.right - wide - 7, 12.0)
            ]
            zone = Box(self.left, self.top, self.right, edge)
            if box := taken.first_free(boxes, zone):
                return text(box.left, box.bottom - 3, words, "bl")
        return ""

    def _guide(self, taken: Obstacles, factor: int) -> str:
        """A triangle: what twice the length needs if memory grows by this factor."""
        if self.axes.lengths[-1] < 2 * self.axes.lengths[0]:
            return ""
        wide = self.x(2 * self.axes.lengths[0]) - self.left
        high = self.y(1) - self.y(factor)
        words = ("length ×2", f"memory ×{factor}")
        text_wide = max(text_width(one, self.layout.text_px) for one in words)
        steep = factor == 4  # at the upper left with words above it; else at the lower right
        edge = self.top if self.budget is None else max(self.top, self.y(self.budget))
        room = Box(self.left + 4, edge + 3, self.right, self.bottom - 4)
        aim = (room.left, room.top + 0.1 * (room.bottom - room.top))
        if not steep:
            aim = (room.right - wide - 8 - text_wide, room.bottom - max(high, 2 * LINE_PX))
        places = [
            (x, y) for x in steps(room.left, room.right) for y in steps(room.top, room.bottom)
        ]
        places.sort(key=lambda place: abs(place[0] - aim[0]) + abs(place[1] - aim[1]))
        for left, top in places:
            up = top + 2 * LINE_PX + 4 if steep else top + max(0.0, LINE_PX - high / 2)
            at = (left, top) if steep else (left + wide + 8, up + high / 2 - LINE_PX)
            boxes = [Box(*at, at[0] + text_wide, at[1] + 2 * LINE_PX)]
            start = (
                left if steep else left + wide / 2
            )  # where the triangle is at least half as high
            boxes += [
                Box(
                    left,
                    up + (0 if steep else high / 2),
                    left + wide,
                    up + high / (2 if steep else 1),
                ),
                Box(start, up, start + wide / 2, up + high),
            ]
            if all(box.within(room) and taken.free(box) for box in boxes):
                taken.boxes += boxes
                return triangle(left, up, wide, high, steep=steep) + "".join(
                    text(at[0], at[1] + 11 + place * LINE_PX, one, "gt")
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
        number = tone(one.line.backend, self.backends)
        under = f" u-{min(one.covered, 3)}" if one.covered else ""
        parts = []
        known = [point for point in one.line.points if point.need_bytes]
        for solid, run in stretches(known):
            way = self._way(run)
            classes = f"ln s-{number}{'' if solid else ' dash'}{under}"
            parts.append(path(way, classes) if len(way) > 1 else "")
        radius = RADIUS * (1 + 0.7 * min(one.covered, 3))
        for x, y, point in one.places:
            title = self._title(one.line.backend, point)
            if point.end == "ok" and one.covered <= MOST_MARKED:
                classes = f"f-{number}{' big' if one.covered else ''}"
                number_of = shape(one.line.backend, self.backends)
                parts.append(mark(number_of, x, y, radius, classes, title))
            elif point.end in OUT_OF_MEMORY:
                parts.append(cross(x, y, number, title, hollow=point.end != "oom"))
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

    def _title(self, backend: str, point: WallPoint) -> str:
        how = {"ok": "measured", "oom": "out of memory", "predicted_oom": "not tried"}
        size = bytes_text(point.need_bytes) or "need not known"
        return f"{backend} at N = {length_text(point.seq_len)}: {size}, {how.get(point.end, '')}"

    # ---- where lines end ------------------------------------------------------------------------

    def _stops(self, bundles: Sequence[Sequence[Drawn]], taken: Obstacles) -> tuple[str, set[int]]:
        """Circles on the budget line, and words beside those that have room: their bundles."""
        parts: list[str] = []
        named: set[int] = set()
        if self.budget is None:
            return "", named
        y = self.y(self.budget)
        circles = [
            (place, bundle[0].line, self.x(bundle[0].line.stop_n))
            for place, bundle in enumerate(bundles)
            if bundle[0].line.stop_n is not None and self._shows(bundle[0].line.stop_n, y)
        ]
        for _, _, x in circles:
            taken.boxes.append(Box(x, y, x, y).grown(4))
        for place, one, x in circles:
            number = tone(one.backend, self.backends)
            verb = "stops" if len(bundles[place]) == 1 else "stop"
            words = f"{verb} at {length_text(one.stop_n or 0)}"
            wide = text_width(words, self.layout.text_px, BOLD_EM)
            above, below = y - LINE_PX - 6, y + 7
            beside = ((-wide - 8, above), (-wide - 8, below), (10, below), (10, above))
            boxes = [Box(x + by, top, x + by + wide, top + LINE_PX) for by, top in beside]
            far_from_end = self.right - x > FAR_PX
            if far_from_end and (box := taken.first_free(boxes, self.inside)):
                named.add(place)
                parts.append(text(box.left, box.bottom - 3, words, f"wl t-{number}"))
            parts.append(
                f'<circle class="stop s-{number}" cx="{coordinate(x)}" cy="{coordinate(y)}"'
                ' r="3.4"/>'
            )
        return "".join(parts), named

    def _shows(self, n: int, y: float) -> bool:
        """A search may have found an N beyond those that are drawn."""
        first, last = self.axes.lengths[0], self.axes.lengths[-1]
        return first <= n <= last and self.top <= y <= self.bottom

    def _labels(self, bundles: Sequence[Sequence[Drawn]], named: set[int]) -> str:
        """Names at the ends of lines, one below the other."""
        room = self.label - LABEL_GAP - 2
        blocks = [
            self._block(bundle, room, stop_named=place in named)
            for place, bundle in enumerate(bundles)
        ]
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
                number = tone(bundle[0].line.backend, self.backends)
                parts.append(line(x + 5, y, at - 3, top + 8, f"lead s-{number}"))
            for place, (words, classes) in enumerate(block):
                parts.append(text(at, top + 13 + place * LINE_PX, words, classes))
        return "".join(parts)

    def _block(
        self, bundle: Sequence[Drawn], room: float, *, stop_named: bool
    ) -> list[tuple[str, str]]:
        """Lines of text with their classes: names, then where they stop or what they need."""
        entries = [
            (part, f"lb t-{tone(one.line.backend, self.backends)}")
            for one in (bundle if len(bundle) <= MOST_NAMES else bundle[: MOST_NAMES - 1])
            for part in name_lines(one.line.backend, room)
        ]
        if len(bundle) > MOST_NAMES:
            entries.append((f"+ {len(bundle) - MOST_NAMES + 1} more", "lb"))
        last, several = bundle[0].line, len(bundle) > 1
        stop, point = stop_words(last), last.points[-1]
        if stop is not None and not stop_named:
            first, second = stop
            return [
                *entries,
                (first if not several else first.replace("stops", "stop"), "sub"),
                (second, f"sub {entries[0][1].removeprefix('lb ')} wl"),
            ]
        size = size_text(point.need_bytes)
        return [*entries, (size, "sub")] if size else entries
