"""Draws bars of shares: each bar is a whole with the part in use, in the colour of its backend."""

from collections.abc import Callable

from ..elements import Bars
from .palette import COLOURS, Places, tone
from .sheet import INK, MUTE, NAME_PX, Sheet, Width, widest, wrapped

PITCH, BAR_PX, GAP_PX = 22.0, 13.0, 1.5
LAYOUTS: dict[Width, tuple[float, float]] = {"wide": (632, 13), "narrow": (326, 14)}
LEAST_BAR = 70.0


def draw(
    bars: Bars, places: Places, width: Width, new_sheet: Callable[[float], Sheet] = Sheet
) -> Sheet:
    """Where a note has no room beside its bar it stands below."""
    whole, size = LAYOUTS[width]
    sheet, y = new_sheet(whole), 0.0
    every = [bar for *_, group in bars.groups for bar in group]
    label = widest([part for bar in every for part in wrapped(bar.label, whole / 2, size)], size)
    note = widest([bar.note for bar in every], size)
    below = label + note + LEAST_BAR + 24 > whole
    left, right = label + 10, whole if below else whole - note - 12
    for backend, heading, group in bars.groups:
        colour = COLOURS[f"b{tone(backend, places)}"]
        for one in wrapped(heading, whole, NAME_PX, bold=True):
            sheet.text(0, y + 15, one, INK, NAME_PX, bold=True)
            y += PITCH
        for bar in group:
            names = wrapped(bar.label, label + 1, size)
            notes = wrapped(bar.note, whole - left, size) if below else [bar.note]
            for place, one in enumerate(names):
                sheet.text(label, y + 15 + 15 * place, one, size=size, ha="right")
            top = y + (PITCH - BAR_PX) / 2
            used = max(bar.share * (right - left) - GAP_PX, GAP_PX)
            sheet.box(left, top, used, BAR_PX, colour)
            sheet.box(left, top, right - left, BAR_PX, "none", ec=MUTE)
            sheet.title((left, y, right - left, PITCH), f"{heading}, {bar.label}: {bar.note}")
            for place, one in enumerate(notes, start=1 if below else 0):
                x = left if below else right + 10
                sheet.text(x, y + 15 + 15 * place, one, INK, size)
            y += PITCH + 15 * max(len(names) - 1, len(notes) if below else 0)
        y += 8
    sheet.height = y
    return sheet
