"""Draws ratios as dots on one log axis: the line of 1, the band of what counts as the same.

Each dot's number and word stand beside it.
"""

from collections.abc import Callable
from itertools import groupby
from math import isfinite
from typing import Any

from ..elements import DotPlot, DotRow
from ..formatting import in_brackets, ratio_bounds_text
from .axes import Limits, powers, ratio_text, share_of, within
from .palette import COLOURS, Places, tone
from .sheet import INK, LINE_PX, MUTE, Sheet, Width, marker, text_width, widest, wrapped

LAYOUTS: dict[Width, tuple[float, float, float, float]] = {
    "wide": (476, 150, 22, 13),  # width, most of a name's line, from row to row, text
    "narrow": (326, 100, 26, 14),
}
LEAST_AXIS = 90.0
MOST_TICKS = 6
FINE = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
LONGEST_BAR = 8.0  # times the largest ratio: a longer interval is cut off
TOP = 16.0
LOOKS: dict[str, dict[str, Any]] = {
    "same": {"color": MUTE},
    "not decided": {"color": MUTE, "style": "italic"},
}


def draw(
    plot: DotPlot, places: Places, width: Width, new_sheet: Callable[[float], Sheet] = Sheet
) -> Sheet:
    return _Drawing(plot, places, width, new_sheet).draw()


class _Drawing:
    """From left to right: heading, name, axis, number, word. Without room the heading is above its
    rows, and the axis below names and numbers.
    """

    def __init__(
        self, plot: DotPlot, places: Places, width: Width, new_sheet: Callable[[float], Sheet]
    ) -> None:
        self.plot, self.places = plot, places
        whole, most, self.pitch, self.size = LAYOUTS[width]
        self.sheet = new_sheet(whole)
        rows = plot.rows
        self.names = {row.label: wrapped(row.label, most) for row in rows}
        name = widest((one for lines in self.names.values() for one in lines), 14, "bold") + 12
        said = widest((row.dot.said for row in rows if row.dot), self.size, "bold")
        self.value = whole - said - 8  # where numbers end
        right = self.value - widest((_value(row) for row in rows if row.dot), self.size) - 10
        heads = max(widest((row.group for row in rows), 14, "bold"), widest(r.remark for r in rows))
        self.headed = right - heads - 14 - name < LEAST_AXIS
        self.start = 0.0 if self.headed else heads + 14
        left = self.start + name
        self.down = LINE_PX if right - left < LEAST_AXIS else 0.0
        self.left, self.right = (self.start + 12, whole - 12) if self.down else (left, right)
        self.limits = _limits(plot)

    def draw(self) -> Sheet:
        sheet, y = self.sheet, TOP
        for place, (heading, rows) in enumerate(groupby(self.plot.rows, lambda row: row.group)):
            if place:
                sheet.line((0, sheet.width), (y, y), COLOURS["p-rule"], lw=1, zorder=-1)
            y = self._group(heading, list(rows), y + 8)
        low, high = self.at(1 / (1 + self.plot.band_ratio)), self.at(1 + self.plot.band_ratio)
        sheet.box((low, TOP, high - low, y - TOP), fc=COLOURS["p-band"], zorder=-2)
        most = min(MOST_TICKS, int((self.right - self.left) / 26))
        ticks = powers(self.limits, most, 2)
        for tick in ticks if len(ticks) > 2 else within(self.limits, FINE):
            x, colour = self.at(tick), MUTE if tick == 1 else COLOURS["p-grid"]
            sheet.line((x, x), (TOP, y), colour, lw=1, zorder=-1)
            sheet.text(x, 11, ratio_text(tick), ha="center")
        sheet.height = y
        return sheet

    def at(self, ratio: float) -> float:
        ratio = min(max(ratio, self.limits[0]), self.limits[1])
        return self.left + share_of(ratio, self.limits, "log") * (self.right - self.left)

    def _group(self, heading: str, rows: list[DotRow], y: float) -> float:
        """Where it ends."""
        lines, remark = wrapped(heading, self.sheet.width), rows[0].remark
        for place, part in enumerate(lines):
            self.sheet.name(0, y + 14 + 18 * place, part, halo=self.headed)
        beside, below = (
            (text_width(lines[0], 14, "bold") + 7, 0) if self.headed and lines else (0, 17)
        )
        self.sheet.text(beside, y + 14 + below, remark, halo=self.headed)
        end = y + 36.0
        y += 18 * len(lines) + 6 if self.headed else 0
        for row in rows:
            tall = self.pitch + LINE_PX * (len(self.names[row.label]) - 1)
            self._row(row, y + tall / 2)
            y += tall + self.down
        return max(y, end) + 6

    def _row(self, row: DotRow, y: float) -> None:
        sheet, size, names = self.sheet, self.size, self.names[row.label]
        backend = row.label if row.label in self.places else row.group
        number, value = tone(backend, self.places), _value(row)
        for place, name in enumerate(names):
            up = y + 4.5 + LINE_PX * (place - (len(names) - 1) / 2)
            sheet.name(self.start, up, name, COLOURS[f"t{number}"], halo=bool(self.down))
        axis_y = y + self.down
        if row.dot is None:
            fits = text_width(value) < self.value - self.left
            sheet.text(
                self.value if fits else self.right, (y if fits else axis_y) + 4.5, value, ha="right"
            )
            return
        dot, colour = row.dot, COLOURS[f"b{number}"]
        if dot.low is not None and dot.high is not None:
            low, high = self.at(dot.low), self.at(dot.high)
            sheet.box((low, axis_y - 4.5, max(high - low, 1.0), 9), fc=colour, alpha=0.38)
        shape = marker(backend, self.places)
        sheet.marks([self.at(dot.ratio)], [axis_y], colour, marker=shape, ms=8)
        sheet.text(self.value, y + 4.5, value, INK, size, ha="right")
        weight = "bold" if dot.word in ("more", "less") else "normal"
        look = {"color": INK, "weight": weight} | LOOKS.get(dot.word, {})
        sheet.text(self.value + 8, y + 4.5, dot.said, size=size, **look)
        bounds = in_brackets(ratio_bounds_text(dot.low, dot.high, _number))
        box = (self.left, axis_y - self.pitch / 2, self.right - self.left, self.pitch)
        sheet.title(box, f"{row.group}, {row.label}: {value}{bounds}")


def _limits(plot: DotPlot) -> Limits:
    """Of all ratios, their intervals, 1 and the band."""
    dots = [row.dot for row in plot.rows if row.dot is not None]
    ratios = [1.0, *(dot.ratio for dot in dots if isfinite(dot.ratio) and dot.ratio > 0)]
    least, most = min(ratios) / LONGEST_BAR, max(ratios) * LONGEST_BAR
    ends = (end for dot in dots for end in (dot.low, dot.high) if end is not None and end == end)
    edge = 1 + plot.band_ratio
    every = [*ratios, 1 / edge, edge, *(min(max(end, least), most) for end in ends)]
    low, high = min(every) / 1.12, max(every) * 1.12
    if high / low < 2:  # a narrow range makes small differences look large
        low, high = min(low, 0.75), max(high, 1.5)
    return low, high


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
