"""Draws bars of shares: each bar is a whole with the part in use, in the colour of its backend."""

from collections.abc import Callable, Iterator
from math import ceil

from ..elements import Bar, Bars
from .palette import COLOURS, Places, tone
from .sheet import INK, LINE_PX, MUTE, Sheet, Width, widest, wrapped

PITCH, BAR_PX, GAP_PX, SQUARE_PX = 22.0, 13.0, 1.5, 20.0
LAYOUTS: dict[Width, tuple[float, float]] = {"wide": (632, 13), "narrow": (326, 14)}
LEAST_BAR = 70.0


def draw(
    bars: Bars, places: Places, width: Width, new_sheet: Callable[[float], Sheet] = Sheet
) -> Sheet:
    """Where a note has no room beside its bar it stands below."""
    whole, size = LAYOUTS[width]
    sheet, y = new_sheet(whole), 0.0
    every = [bar for _, group in bars.groups for bar in group]
    names = {bar.label: wrapped(bar.label, whole / 2, size, "normal") for bar in every}
    label = widest((part for lines in names.values() for part in lines), size)
    note = widest((bar.note for bar in every), size)
    below = label + note + LEAST_BAR + 24 > whole
    left = label + 10
    for heading, group in bars.groups:
        for words in wrapped(heading, whole):
            sheet.name(0, y + 15, words)
            y += PITCH
        note = widest((bar.note for bar in group), size)
        right = whole if below or not note else whole - note - 12
        room, most = right - left, max(bar.squares for bar in group)
        for bar in group:
            notes = wrapped(bar.note, whole - left, size, "normal") if below else [bar.note]
            for place, words in enumerate(names[bar.label]):
                look = {"weight": "bold", "color": COLOURS[f"t{tone(bar.backend, places)}"]}
                look = look if bar.label == bar.backend else {}
                sheet.text(label, y + 15 + LINE_PX * place, words, size=size, ha="right", **look)
            top = y + (PITCH - BAR_PX) / 2 - 3 * bool(bar.squares)
            colour = COLOURS[f"b{tone(bar.backend, places)}"]
            for start, wide, tall in _pieces(bar, room, most):
                sheet.box((left + start, top, wide, tall), fc=colour, lw=0)
            if bar.low is not None and bar.high is not None:
                ends, middle = (
                    (left + room * min(1, bar.low), left + room * min(1, bar.high)),
                    top + BAR_PX / 2,
                )
                sheet.line(ends, (middle, middle), INK, lw=1.5)
                for end in ends:
                    sheet.line((end, end), (middle - 4, middle + 4), INK, lw=1.5)
            if bar.mark is not None:
                x = left + room * bar.mark
                sheet.line((x, x), (y, y + PITCH), INK, lw=1.5)
            if bars.framed:
                sheet.box((left, top, right - left, BAR_PX), fc="none", ec=MUTE)
            sheet.title((left, top, right - left, BAR_PX), f"{heading}, {bar.label}: {bar.note}")
            for place, words in enumerate(notes, start=below):
                x = left if below else right + 10
                sheet.text(x, y + 15 + LINE_PX * place, words, INK, size)
            y += PITCH + LINE_PX * max(len(names[bar.label]) - 1, len(notes) * below)
        y += 8
    sheet.height = y
    return sheet


def _pieces(bar: Bar, room: float, most: float) -> Iterator[tuple[float, float, float]]:
    """Where each begins, how wide and how tall it is. `most`: squares of one bar."""
    count = bar.squares or bar.parts
    pitch = min(SQUARE_PX, room / most) if bar.squares else bar.share * room / count
    for place in range(ceil(count)):
        wide = pitch * min(1.0, count - place) - GAP_PX
        yield place * pitch, max(wide, GAP_PX), pitch - GAP_PX if bar.squares else BAR_PX
