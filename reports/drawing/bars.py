"""Draws bars of shares: each bar is a whole with the part in use, in the colour of its backend."""

from collections.abc import Callable

from ..elements import Bars
from .palette import COLOURS, Places, tone
from .sheet import INK, LINE_PX, MUTE, Sheet, Width, widest, wrapped

PITCH, BAR_PX, GAP_PX = 22.0, 13.0, 1.5
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
    left, right = label + 10, whole if below else whole - note - 12
    for heading, group in bars.groups:
        for words in wrapped(heading, whole):
            sheet.name(0, y + 15, words)
            y += PITCH
        for bar in group:
            notes = wrapped(bar.note, whole - left, size, "normal") if below else [bar.note]
            for place, words in enumerate(names[bar.label]):
                sheet.text(label, y + 15 + LINE_PX * place, words, size=size, ha="right")
            top = y + (PITCH - BAR_PX) / 2
            used = max(bar.share * (right - left) - GAP_PX, GAP_PX)
            sheet.box((left, top, used, BAR_PX), fc=COLOURS[f"b{tone(bar.backend, places)}"], lw=0)
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
