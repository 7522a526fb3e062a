"""Draws maps of weights: a square per head, all with one colour scale, which ends where few weights
are larger, so that one bright spot leaves the others visible.
"""

from collections.abc import Callable, Iterator, Sequence
from math import ceil, isfinite
from typing import Any

import numpy as np

from ..elements import Maps
from .axes import plain_text
from .sheet import MUTE, Box, Sheet, text_width, wrapped

SHARE_BELOW = 0.99  # of the weights above 0 that the scale tells apart
COLOURS = "viridis"  # even to the eye, on white and on black
SIDE, LEFT, RIGHT, TOP, BELOW = 190.0, 34.0, 8.0, 26.0, 40.0
SCALE_HIGH, SCALE_STEPS = 12.0, 64
MOST_TICKS = 5
NAME_STEP = 17.0  # from line to line of a name


def draw(maps: Maps, new_sheet: Callable[[float], Sheet] = Sheet) -> list[Sheet]:
    """Each map, and the scale."""
    weights = sorted(
        w for one in maps.maps for row in one.rows for w in row if isfinite(w) and w > 0
    )
    top = weights[int(SHARE_BELOW * (len(weights) - 1))] if weights else 1.0
    names = [wrapped(one.label, SIDE) for one in maps.maps]
    left = max([LEFT, *(text_width(name) + 12 for name in maps.y_names)])
    x_room = 16 + max(text_width(name) for name in (*maps.x_names, "100"))
    start = TOP + NAME_STEP * (max(map(len, names), default=1) - 1)  # the same for all
    found = []
    for one, name in zip(maps.maps, names, strict=True):
        sheet = new_sheet(left + SIDE + RIGHT)
        for place, part in enumerate(name):
            sheet.name(left, 14 + NAME_STEP * place, part)
        _image(sheet, one.rows, (left, start, SIDE, SIDE), top)
        for x, words in _ticks(left, len(one.rows[0]), maps.x_names, x_room):
            sheet.text(x, start + SIDE + 16, words, ha="center")
        for y, words in _ticks(start, len(one.rows), maps.y_names, NAME_STEP):
            sheet.text(left - 6, y + 4.5, words, ha="right")
        axes = f"{maps.x_label} →, {maps.y_label} ↓"
        sheet.text(left + SIDE, start + SIDE + 33, axes, ha="right")
        sheet.height = start + SIDE + BELOW
        found.append(sheet)
    return [*found, _scale(maps, top, new_sheet, clips=bool(weights) and weights[-1] > top)]


def _scale(maps: Maps, top: float, new_sheet: Callable[[float], Sheet], *, clips: bool) -> Sheet:
    sheet = new_sheet(LEFT + SIDE + RIGHT)
    sheet.text(0, 14, maps.value_label)
    _image(sheet, [np.linspace(0, 1, SCALE_STEPS + 1)], (0, 22, SIDE, SCALE_HIGH), 1.0)
    below = 22 + SCALE_HIGH
    for share, anchor in ((0.0, "left"), (0.5, "center"), (1.0, "right")):
        words = plain_text(float(f"{share * top:.2g}"))
        sheet.line((share * SIDE, share * SIDE), (below, below + 4), MUTE, lw=1)
        said = f"≥ {words}" if clips and share == 1 else words
        sheet.text(share * SIDE, below + 18, said, ha=anchor)
    sheet.height = below + 24
    return sheet


def _ticks(
    start: float, count: int, names: Sequence[str], room: float
) -> Iterator[tuple[float, str]]:
    """The middle of some cells, and their name or number, as far as those have room."""
    most = max(1, int(SIDE / room)) if names else MOST_TICKS
    for tick in range(0, count, ceil(count / most)):
        yield start + SIDE * (tick + 0.5) / count, names[tick] if names else str(tick + 1)


def _image(sheet: Sheet, rows: Any, box: Box, top: float) -> None:
    """A pixel per weight, in a frame; none for what is missing (NaN)."""
    shares = np.nan_to_num(np.array(rows, float) / top, nan=np.nan, posinf=0.0, neginf=0.0)
    sheet.image(shares, box, COLOURS)
    sheet.box(box, fc="none", ec=MUTE)
