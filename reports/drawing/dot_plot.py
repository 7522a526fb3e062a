"""Draws ratios as dots on one log axis: the line of 1, the band of what counts as the same.

Each dot's number and word stand beside it.
"""

from dataclasses import dataclass
from itertools import groupby, pairwise
from math import isfinite, log2

from ..elements import Dot, DotPlot, DotRow
from ..formatting import in_brackets, ratio_bounds_text
from .chart_axes import Axis, powers, ratio_text
from .marks import (
    BOLD_EM,
    TEXT_EM,
    Width,
    line,
    mark,
    name_room,
    rect,
    shape,
    svg,
    text,
    text_width,
    wrapped,
)
from .palette import Places, tone

NAME_PX, LINE_PX = 14.0, 15.0
TEXT_PX = 13.0  # of what there is in place of a ratio
MOST_HEADING = 112.0  # beside the rows; longer ones are above them
MOST_TICKS, FEWEST_POWERS = 6, 2
TICK_PX, LEAST_AXIS = 34.0, 90.0
FINE = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
LONGEST_BAR = 8.0  # times the largest ratio: a longer interval is cut off
TOP = 16.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Measures in units of the view box. `headed`: headings have lines of their own. `label`: most
    of a name's line.
    """

    width: float
    label: float
    pitch: float
    text_px: float
    headed: bool


LAYOUTS: dict[Width, Layout] = {
    "wide": Layout(width=476, label=150, pitch=22, text_px=13, headed=False),
    "narrow": Layout(width=326, label=100, pitch=26, text_px=14, headed=True),
}


def draw(plot: DotPlot, places: Places, width: Width) -> str:
    """SVG text."""
    layout = LAYOUTS[width]
    groups = [(heading, list(rows)) for heading, rows in groupby(plot.rows, lambda row: row.group)]
    label = max(40.0, name_room((row.label for row in plot.rows), NAME_PX, layout.label))
    headings = max((text_width(heading, NAME_PX, BOLD_EM) for heading, _ in groups), default=0.0)
    remarks = max((text_width(heads[0].remark, NAME_PX) for _, heads in groups), default=0.0)
    timed = [row for row in plot.rows if row.dot]
    words = max(
        (text_width(row.dot.said, layout.text_px, BOLD_EM) for row in timed if row.dot), default=0.0
    )
    value = layout.width - words - 8
    numbers = max((text_width(_value(row), layout.text_px) for row in timed), default=0.0)
    right = value - min(max(numbers, 36.0), 64.0) - 8
    start = max(headings, remarks, 80.0) + 14
    headed = layout.headed or headings > MOST_HEADING or right - start - label - 12 < LEAST_AXIS
    start = 0.0 if headed else start
    left = start + label + 12
    below = right - left < LEAST_AXIS  # then it lies below names and numbers
    if below:
        left, right, label = start + 12, layout.width - 12, max(label, right - start)
    axis = _axis(plot, left, right)
    y, parts = TOP, []
    for place, (heading, rows) in enumerate(groups):
        parts.append(line(0, y, layout.width, y, "sep") if place else "")
        y += 8
        remark = rows[0].remark
        top = y
        if headed:
            for part in wrapped(heading, layout.width, NAME_PX):
                parts.append(text(0, y + 14, part, "pt", remark=remark if y == top else ""))
                y += 18
            y += 6
        else:
            parts.append(text(0, y + 15, heading, "pt"))
            parts.append(text(0, y + 32, remark, "src") if remark else "")
        for row in rows:
            lines = len(wrapped(row.label, label + 1, NAME_PX))
            high = layout.pitch + LINE_PX * (lines - 1)
            down = high / 2 + LINE_PX * below
            parts.append(_row(row, y + high / 2, y + down, axis, places, start, label, value))
            y += high + LINE_PX * below
        y = max(y, top + 36.0 if remark and not headed else y) + 6
    frame = _frame(axis, plot.band_ratio, y)
    return svg(layout.width, y, f"dots {width}", plot.description, frame + "".join(parts))


def _axis(plot: DotPlot, left: float, right: float) -> Axis:
    """Over all ratios, their intervals, 1 and the band."""
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
    return Axis("log", low, high, left, right)


def _ticks(axis: Axis) -> list[float]:
    """Powers of 2, or finer steps if there are few of those."""
    wide = axis.end - axis.start
    if log2(axis.high / axis.low) >= FEWEST_POWERS:
        return powers(axis.low, axis.high, int(min(MOST_TICKS, wide / 26)), 2)
    fine = [tick for tick in FINE if axis.low <= tick <= axis.high]
    near = min((axis.at(b) - axis.at(a) for a, b in pairwise(fine)), default=TICK_PX)
    return fine if near >= TICK_PX else [1.0]


def _frame(axis: Axis, band: float, bottom: float) -> str:
    low, high = axis.at(1 / (1 + band)), axis.at(1 + band)
    parts = [rect(low, TOP, high - low, bottom - TOP, "band")]
    for tick in _ticks(axis):
        classes = "one" if tick == 1 else "gl"
        parts.append(line(axis.at(tick), TOP, axis.at(tick), bottom, classes))
        parts.append(text(axis.at(tick), 11, ratio_text(tick), "tk", "middle"))
    return "".join(parts)


def _row(
    row: DotRow,
    y: float,
    axis_y: float,
    axis: Axis,
    places: Places,
    start: float,
    label: float,
    value: float,
) -> str:
    backend = row.label if row.label in places else row.group
    number, look = tone(backend, places), shape(backend, places)
    names = wrapped(row.label, label + 1, NAME_PX)
    up = y + 4.5 - LINE_PX * (len(names) - 1) / 2
    parts = [
        text(start, up + LINE_PX * place, name, f"lb halo t-{number}")
        for place, name in enumerate(names)
    ]
    if row.dot is None:
        missing = row.missing or "no pair"
        lines = wrapped(missing, value - start - label, TEXT_PX, TEXT_EM)
        at, down = (value, y + 4.5) if len(lines) == 1 else (axis.end, axis_y + 4.5)
        parts.append(text(at, down, missing, "src", "end"))
        return "".join(parts)
    dot, title = row.dot, f"{row.group}, {row.label}: {_value(row)}{_bounds(row.dot)}"
    if dot.low is not None and dot.high is not None:
        low, high = axis.at(dot.low), axis.at(dot.high)
        parts.append(rect(low, axis_y - 4.5, max(high - low, 1.0), 9, f"ci f-{number}"))
    parts.append(mark(look, axis.at(dot.ratio), axis_y, 4.2, f"f-{number}", title))
    parts.append(text(value, y + 4.5, _value(row), "num", "end"))
    parts.append(text(value + 8, y + 4.5, dot.said, f"wd {dot.word.replace(' ', '-')}"))
    return "".join(parts)


def _bounds(dot: Dot) -> str:
    return in_brackets(ratio_bounds_text(dot.low, dot.high, _number))


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
