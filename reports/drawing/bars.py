"""Draws bars of shares: each bar is a whole with the part in use, in the colour of its backend."""

from ..elements import Bar, Bars
from .marks import TEXT_EM, Width, name_room, rect, svg, text, text_width, wrapped
from .palette import Places, tone

LINE_PX, BAR_PX, GAP_PX = 22.0, 13.0, 1.5
NAME_PX = 14.0
WIDTHS: dict[Width, tuple[float, float]] = {"wide": (632, 13), "narrow": (326, 14)}
LEAST_BAR = 70.0


def draw(bars: Bars, places: Places, width: Width) -> str:
    """SVG text. Where a note has no room beside its bar it stands below."""
    whole, text_px = WIDTHS[width]
    every = [bar for *_, group in bars.groups for bar in group]
    label = name_room((bar.label for bar in every), text_px, whole / 2, TEXT_EM)
    note = max((text_width(bar.note, text_px, 0.66) for bar in every), default=0.0)
    below = label + note + LEAST_BAR + 24 > whole
    right = whole if below else whole - note - 12
    y, parts = 0.0, []
    for backend, heading, group in bars.groups:
        for one in wrapped(heading, whole, NAME_PX):
            parts.append(text(0, y + 15, one, "pt"))
            y += LINE_PX
        for bar in group:
            names = wrapped(bar.label, label + 1, text_px, TEXT_EM)
            for place, one in enumerate(names):
                parts.append(text(label, y + 15 + 15 * place, one, "tk", "end"))
            colour = f"f-{tone(backend, places)}"
            parts += _bar(bar, label + 10, right, y + (LINE_PX - BAR_PX) / 2, colour)
            if below:
                y += 15
                notes = wrapped(bar.note, whole - label - 10, text_px, 0.66)
                for place, one in enumerate(notes):
                    parts.append(text(label + 10, y + 15 + 15 * place, one, ""))
                y += 15 * (len(notes) - 1)
            else:
                parts.append(text(right + 10, y + 15, bar.note, ""))
            y += LINE_PX + 15 * (0 if below else len(names) - 1)
        y += 8
    return svg(whole, y, f"bars {width}", bars.description, "".join(parts))


def _bar(bar: Bar, left: float, right: float, top: float, colour: str) -> tuple[str, str]:
    wide = right - left
    used = rect(left, top, max(bar.share * wide - GAP_PX, GAP_PX), BAR_PX, colour)
    return used, rect(left, top, wide, BAR_PX, "frame")
