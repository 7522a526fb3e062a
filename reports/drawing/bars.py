"""Draws rows below headings: a name, a bar of a share or a dot of a ratio, and what it says.

Ratios have one log axis, the line of 1 and the band of what counts as the same.
"""

from collections.abc import Callable, Iterator
from itertools import groupby
from math import ceil, isfinite
from typing import NamedTuple

from ..elements import Bar, Bars, Dot, DotPlot
from ..formatting import in_brackets, ratio_bounds_text, whole_text
from .axes import Limits, powers, ratio_text, share_of, within
from .palette import COLOURS, Places, tone
from .sheet import INK, LINE_PX, MUTE, Box, Sheet, Width, marker, text_width, widest, wrapped

PITCH, BAR_PX, GAP_PX, SQUARE_PX = 22.0, 13.0, 1.5, 20.0
LAYOUTS: dict[Width, tuple[float, float]] = {"wide": (632, 13), "narrow": (326, 14)}
LEAST_BAR, LEAST_AXIS = 70.0, 110.0
MOST_TICKS = 6
FINE = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
LONGEST_BAR = 8.0  # times the largest ratio: a longer interval is cut off


class _Row(NamedTuple):
    label: str
    backend: str
    note: str
    item: Bar | Dot | None
    more: str = ""  # that is said where the reader points


class _Group(NamedTuple):
    heading: str
    remark: str
    rows: list[_Row]


def draw(
    picture: Bars | DotPlot,
    places: Places,
    width: Width,
    new_sheet: Callable[[float], Sheet] = Sheet,
) -> Sheet:
    """Where a note has no room beside its bar or dot it stands below."""
    whole, size = LAYOUTS[width]
    plot = picture if isinstance(picture, DotPlot) else None
    groups = list(_of_bars(picture) if isinstance(picture, Bars) else _of_dots(picture, places))
    every = [row for group in groups for row in group.rows]
    sheet, y = new_sheet(whole), 16.0 if plot else 0.0
    names = {row.label: wrapped(row.label, whole / 2, size, "bold") for row in every}
    label = widest((part for lines in names.values() for part in lines), size, "bold")
    note = widest((row.note for row in every), size)
    below = label + note + (LEAST_AXIS if plot else LEAST_BAR) + 24 > whole
    left = label + 10
    limits = _limits(plot) if plot else (0.0, 1.0)
    for group in groups:
        for words in wrapped(group.heading, whole):
            sheet.name(0, y + 15, words, halo=plot is not None)
            beside, y = text_width(words, 14, "bold") + 7, y + PITCH
        if group.remark:
            sheet.text(beside, y - PITCH + 15, group.remark, halo=True)
        if plot is None:  # each group has as much room as its own notes leave
            note = widest((row.note for row in group.rows), size)
        right = whole if below or not note else whole - note - 12
        most = max(row.item.squares if isinstance(row.item, Bar) else 0 for row in group.rows)
        for row in group.rows:
            number, top = tone(row.backend, places), y + (PITCH - BAR_PX) / 2
            is_named = row.label == row.backend or plot is not None
            look = {"weight": "bold", "color": COLOURS[f"t{number}"]} if is_named else {}
            for place, words in enumerate(names[row.label]):
                sheet.text(label, y + 15 + LINE_PX * place, words, size=size, ha="right", **look)
            box, colour = (left, top, right - left, BAR_PX), COLOURS[f"b{number}"]
            if isinstance(row.item, Bar):
                _bar(sheet, box, row.item, colour, most)
                if isinstance(picture, Bars) and picture.framed:
                    sheet.box(box, fc="none", ec=MUTE)
            elif row.item is not None:
                _dot(sheet, box, row.item, limits, colour, marker(row.backend, places))
            if row.item is not None:
                said = f"{group.heading}, {row.label}: {row.more or row.note}"
                sheet.title((left, y, right - left, PITCH), said)
            notes = wrapped(row.note, whole - left, size, "normal") if below else [row.note]
            is_sure = isinstance(row.item, Bar) or (row.item and row.item.word in ("more", "less"))
            for place, words in enumerate(notes, start=below):
                x, down = left if below else right + 10, y + 15 + LINE_PX * place
                sheet.text(x, down, words, INK if is_sure else MUTE, size, halo=below)
            y += PITCH + LINE_PX * max(len(names[row.label]) - 1, len(notes) * below)
        y += 8
    if plot:
        _axis(sheet, plot, limits, (left, 16.0, right - left if groups else 99, y - 16))
    sheet.height = y
    return sheet


# ---- bars ----------------------------------------------------------------------------------------


def _of_bars(bars: Bars) -> Iterator[_Group]:
    for heading, group in bars.groups:
        yield _Group(heading, "", [_Row(one.label, one.backend, one.note, one) for one in group])


def _bar(sheet: Sheet, box: Box, bar: Bar, colour: str, most: float) -> None:
    """`most`: squares of one bar of its group."""
    left, top, room, tall = box
    count = bar.squares or bar.parts
    pitch = min(SQUARE_PX, room / most) if bar.squares else bar.share * room / count
    tall, top = (pitch - GAP_PX, top - 3) if bar.squares else (tall, top)
    for place in range(ceil(count)):
        wide = max(pitch * min(1.0, count - place) - GAP_PX, GAP_PX)
        sheet.box((left + place * pitch, top, wide, tall), fc=colour, lw=0)
    if bar.low is not None and bar.high is not None:
        low, high = (left + room * min(1, end) for end in (bar.low, bar.high))
        middle = top + tall / 2
        sheet.line((low, high), (middle, middle), INK, lw=1.5)
        for end in (low, high):
            sheet.line((end, end), (middle - 4, middle + 4), INK, lw=1.5)
    if bar.mark is not None:
        x = left + room * bar.mark
        sheet.line((x, x), (top - 4.5, top - 4.5 + PITCH), INK, lw=1.5)


# ---- dots ----------------------------------------------------------------------------------------


def _of_dots(plot: DotPlot, places: Places) -> Iterator[_Group]:
    for heading, some in groupby(plot.rows, lambda row: row.group):
        rows, found = list(some), []
        for row in rows:
            backend, dot = row.label if row.label in places else row.group, row.dot
            if dot is None:
                found.append(_Row(row.label, backend, row.missing or "no pair", None))
                continue
            value = f"×{whole_text(dot.ratio)}"
            more = value + in_brackets(ratio_bounds_text(dot.low, dot.high))
            found.append(_Row(row.label, backend, f"{value} {dot.said}", dot, more))
        yield _Group(heading, rows[0].remark, found)


def _dot(sheet: Sheet, box: Box, dot: Dot, limits: Limits, colour: str, shape: str) -> None:
    middle = box[1] + box[3] / 2
    if dot.low is not None and dot.high is not None:
        low, high = _at(dot.low, limits, box), _at(dot.high, limits, box)
        sheet.box((low, middle - 4.5, max(high - low, 1.0), 9), fc=colour, alpha=0.38)
    sheet.marks([_at(dot.ratio, limits, box)], [middle], colour, marker=shape, ms=8)


def _axis(sheet: Sheet, plot: DotPlot, limits: Limits, box: Box) -> None:
    edge, (_, top, room, tall) = 1 + plot.band_ratio, box
    low, high = _at(1 / edge, limits, box), _at(edge, limits, box)
    sheet.box((low, top, high - low, tall), fc=COLOURS["p-band"], zorder=-2)
    ticks = powers(limits, min(MOST_TICKS, int(room / 26)), 2)
    for tick in ticks if len(ticks) > 2 else within(limits, FINE):
        x, colour = _at(tick, limits, box), MUTE if tick == 1 else COLOURS["p-grid"]
        sheet.line((x, x), (top, top + tall), colour, lw=1, zorder=-1)
        sheet.text(x, 11, ratio_text(tick), ha="center")


def _at(ratio: float, limits: Limits, box: Box) -> float:
    ratio = min(max(ratio, limits[0]), limits[1])
    return box[0] + share_of(ratio, limits, "log") * box[2]


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
