"""Draws bars of shares: each bar is a whole with the parts in use side by side."""

from ..elements import Bar, Bars
from .marks import TEXT_EM, Width, name_room, rect, svg, text, text_width, wrapped

LINE_PX, BAR_PX, GAP_PX = 22.0, 13.0, 1.5
NAME_PX = 14.0
WIDTHS: dict[Width, tuple[float, float]] = {"wide": (632, 13), "narrow": (326, 14)}
LEAST_BAR = 70.0
IN_USE, LIMITING = "f-0", "f-1"


def draw(bars: Bars, width: Width) -> str:
    """SVG text. Where a note has no room beside its bar it stands below."""
    whole, text_px = WIDTHS[width]
    every = [bar for _, group in bars.groups for bar in group]
    label = name_room((bar.label for bar in every), text_px, whole / 2, TEXT_EM)
    note = max((text_width(bar.note, text_px, 0.66) for bar in every), default=0.0)
    below = label + note + LEAST_BAR + 24 > whole
    right = whole if below else whole - note - 12
    y, parts = 0.0, []
    for heading, group in bars.groups:
        for one in wrapped(heading, whole, NAME_PX):
            parts.append(text(0, y + 15, one, "pt"))
            y += LINE_PX
        for bar in group:
            names = wrapped(bar.label, label + 1, text_px, TEXT_EM)
            for place, one in enumerate(names):
                parts.append(text(label, y + 15 + 15 * place, one, "tk", "end"))
            parts.append(_bar(bar, label + 10, right, y + (LINE_PX - BAR_PX) / 2))
            look = "wl" if bar.full else ""
            if below:
                y += 15
                notes = wrapped(bar.note, whole - label - 10, text_px, 0.66)
                for place, one in enumerate(notes):
                    parts.append(text(label + 10, y + 15 + 15 * place, one, look))
                y += 15 * (len(notes) - 1)
            else:
                parts.append(text(right + 10, y + 15, bar.note, look))
            y += LINE_PX + 15 * (0 if below else len(names) - 1)
        y += 8
    return svg(whole, y, f"bars {width}", bars.description, "".join(parts))


def _bar(bar: Bar, left: float, right: float, top: float) -> str:
    start, wide, parts = left, right - left, []
    for share in bar.shares:
        part = max(share * wide - GAP_PX, GAP_PX)
        parts.append(rect(start, top, part, BAR_PX, LIMITING if bar.full else IN_USE))
        start += share * wide
    return "".join(parts) + rect(left, top, wide, BAR_PX, "frame")
