"""Draws ratios as dots on one log axis: the line of 1, the band of what counts as the same.

Each dot's number and word stand beside it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import isfinite, log, log2

from ..elements import Dot, DotPlot, DotRow
from ..formatting import in_brackets, ratio_bounds_text
from .axes import Limits, powers, ratio_text
from .palette import COLOURS, Places, tone
from .sheet import (
    INK,
    LINE_PX,
    MUTE,
    NAME_PX,
    TEXT_PX,
    Sheet,
    Width,
    marker,
    safe,
    text_width,
    widest,
    wrapped,
)

MOST_HEADING = 130.0  # beside the rows; longer ones are above them
MOST_TICKS, FEWEST_POWERS = 6, 2
TICK_PX, LEAST_AXIS = 34.0, 90.0
FINE = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
LONGEST_BAR = 8.0  # times the largest ratio: a longer interval is cut off
TOP = 16.0
WORDS = {"same": {"color": MUTE}, "not decided": {"color": MUTE, "style": "italic"}}


@dataclass(frozen=True, slots=True)
class Layout:
    """Measures in pixels. `label`: most of a name's line. `headed`: headings have lines of their
    own.
    """

    width: float
    label: float
    pitch: float
    size: float
    headed: bool


LAYOUTS: dict[Width, Layout] = {
    "wide": Layout(476, 150, 22, 13, headed=False),
    "narrow": Layout(326, 100, 26, 14, headed=True),
}


def draw(
    plot: DotPlot, places: Places, width: Width, new_sheet: Callable[[float], Sheet] = Sheet
) -> Sheet:
    layout = LAYOUTS[width]
    sheet = new_sheet(layout.width)
    return _Drawing(plot, places, layout, sheet).draw()


class _Drawing:
    """From left to right: heading, name, axis, number, word. Where the axis has no room it lies
    below names and numbers.
    """

    def __init__(self, plot: DotPlot, places: Places, layout: Layout, sheet: Sheet) -> None:
        self.plot, self.places, self.layout, self.sheet = plot, places, layout, sheet
        rows, size = plot.rows, layout.size
        names = (
            part for row in rows for part in wrapped(row.label, layout.label, NAME_PX, bold=True)
        )
        label = max(40.0, widest(list(names), NAME_PX, bold=True))
        dots = [row.dot for row in rows if row.dot]
        words = widest([dot.said for dot in dots], size, bold=True)
        self.value = layout.width - words - 8  # where numbers end
        numbers = widest([_value(row) for row in rows if row.dot], size)
        right = self.value - max(numbers, 36.0) - 8
        headings = widest([row.group for row in rows], NAME_PX, bold=True)
        start = max(headings, widest([row.remark for row in rows]), 80.0) + 14
        self.headed = (
            layout.headed or headings > MOST_HEADING or right - start - label - 12 < LEAST_AXIS
        )
        self.start = 0.0 if self.headed else start
        left = self.start + label + 12
        self.below = right - left < LEAST_AXIS
        if self.below:
            left, right = self.start + 12, layout.width - 12
            label = max(label, right - self.start)
        self.label, self.left, self.right = label, left, right
        self.limits = _limits(plot)

    def draw(self) -> Sheet:
        sheet, y = self.sheet, TOP
        for place, (heading, some) in enumerate(groupby(self.plot.rows, lambda row: row.group)):
            if place:
                sheet.line((0, self.layout.width), (y, y), COLOURS["p-rule"], lw=1, zorder=-1)
            y = self._group(heading, list(some), y + 8)
        self._axis(y)
        sheet.height = y
        return sheet

    def at(self, ratio: float) -> float:
        low, high = self.limits
        share = log(min(max(ratio, low), high) / low) / log(high / low)
        return self.left + share * (self.right - self.left)

    def _axis(self, bottom: float) -> None:
        low, high = self.at(1 / (1 + self.plot.band_ratio)), self.at(1 + self.plot.band_ratio)
        self.sheet.box(low, TOP, high - low, bottom - TOP, COLOURS["p-band"], zorder=-2)
        for tick in _ticks(self.limits, self.right - self.left, self.at):
            x, colour = self.at(tick), MUTE if tick == 1 else COLOURS["p-grid"]
            self.sheet.line((x, x), (TOP, bottom), colour, lw=1, zorder=-1)
            self.sheet.text(x, 11, ratio_text(tick), ha="center")

    def _group(self, heading: str, rows: list[DotRow], y: float) -> float:
        """Where it ends."""
        remark, top, sheet = rows[0].remark, y, self.sheet
        if self.headed:
            lines = wrapped(heading, self.layout.width, NAME_PX, bold=True)
            for part in lines:
                sheet.text(0, y + 14, part, INK, NAME_PX, bold=True, halo=True)
                y += 18
            beside = text_width(lines[0], NAME_PX, bold=True) + 7
            sheet.text(beside, top + 14, remark, halo=True)
            y += 6
        else:
            sheet.text(0, y + 15, heading, INK, NAME_PX, bold=True)
            sheet.text(0, y + 32, remark)
        for row in rows:
            names = wrapped(row.label, self.label + 1, NAME_PX, bold=True)
            tall = self.layout.pitch + LINE_PX * (len(names) - 1)
            self._row(row, names, y + tall / 2)
            y += tall + LINE_PX * self.below
        return max(y, top + 36.0 if remark and not self.headed else y) + 6

    def _row(self, row: DotRow, names: list[str], y: float) -> None:
        sheet, size = self.sheet, self.layout.size
        backend = row.label if row.label in self.places else row.group
        number, up = tone(backend, self.places), y + 4.5 - LINE_PX * (len(names) - 1) / 2
        for place, name in enumerate(names):
            look = {"bold": True, "halo": self.below}
            sheet.text(
                self.start, up + LINE_PX * place, name, COLOURS[f"t{number}"], NAME_PX, **look
            )
        down = y + LINE_PX * self.below
        if row.dot is None:
            fits = text_width(_value(row)) < self.value - self.start - text_width(
                row.label, NAME_PX
            )
            x, at = (self.value, y) if fits else (self.right, down)
            sheet.text(x, at + 4.5, _value(row), ha="right")
            return
        dot, colour = row.dot, COLOURS[f"b{number}"]
        if dot.low is not None and dot.high is not None:
            low, high = self.at(dot.low), self.at(dot.high)
            sheet.box(low, down - 4.5, max(high - low, 1.0), 9, colour, alpha=0.38)
        shape = marker(self.places.get(backend, 0))
        sheet.marks([self.at(dot.ratio)], [down], colour, marker=shape, ms=8.4, mew=0)
        sheet.text(self.value, y + 4.5, _value(row), INK, size, ha="right")
        look = WORDS.get(dot.word, {"color": INK, "bold": dot.word in ("more", "less")})
        sheet.text(self.value + 8, y + 4.5, dot.said, size=size, **look)
        bounds = in_brackets(ratio_bounds_text(dot.low, dot.high, _number))
        box = (self.left, down - self.layout.pitch / 2, self.right - self.left, self.layout.pitch)
        sheet.title(box, f"{row.group}, {row.label}: {_value(row)}{bounds}")


def _limits(plot: DotPlot) -> Limits:
    """Of all ratios, their intervals, 1 and the band."""
    dots = [row.dot for row in plot.rows if row.dot is not None]
    ratios = [dot.ratio for dot in dots if isfinite(dot.ratio) and dot.ratio > 0] or [1.0]
    least, most = min([*ratios, 1.0]), max([*ratios, 1.0])
    bounds = [
        min(max(bound, least / LONGEST_BAR), most * LONGEST_BAR)
        for dot in dots
        for bound in (dot.low, dot.high)
        if bound is not None and bound == bound
    ]
    edge = 1 + plot.band_ratio
    low, high = min([least, *bounds, 1 / edge]) / 1.12, max([most, *bounds, edge]) * 1.12
    if high / low < 2:  # a narrow range makes small differences look large
        low, high = min(low, 0.75), max(high, 1.5)
    return low, high


def _ticks(limits: Limits, wide: float, at: Callable[[float], float]) -> list[float]:
    """Powers of 2, or finer steps if there are few of those."""
    low, high = limits
    if log2(high / low) >= FEWEST_POWERS:
        return powers(low, high, int(min(MOST_TICKS, wide / 26)), 2)
    fine = [tick for tick in FINE if low <= tick <= high]
    near = min((at(b) - at(a) for a, b in pairwise(fine)), default=TICK_PX)
    return fine if near >= TICK_PX else [1.0]


def _value(row: DotRow) -> str:
    return row.missing or "no pair" if row.dot is None else f"×{_number(row.dot.ratio)}"


def _number(ratio: float) -> str:
    """Two decimals; a whole number, which a counted ratio may be, without."""
    if not isfinite(ratio):
        return "?"
    if ratio == int(ratio) and ratio < 1e6:
        return str(int(ratio))
    digits = 0 if ratio >= 100 else 1 if ratio >= 10 else 2 if ratio >= 0.1 else 3
    return f"{ratio:.{digits}f}"
