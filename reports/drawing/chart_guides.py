"""What a chart says of its marks, and where words have room. What has none is left out; the card's
sentence and table have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..elements import Figure, Panel
from .chart_frame import CROSSED, Layout
from .marks import CROSS_PX, cross, line, mark, text, text_width

Box = tuple[float, float, float, float]  # left, top, right, bottom
CLEARANCE_PX = 3.0  # between a text and a line
RADIUS = 3.6
PIECES = 40  # in which a line is between two points, to find out what it crosses


@dataclass(frozen=True, slots=True)
class Room:
    """The plot, and the lines in it, as places."""

    plot: Box
    ways: Sequence[Sequence[tuple[float, float]]]

    def is_free(self, box: Box) -> bool:
        """Whether it lies within the plot, and no line and no mark within it."""
        left, top, right, bottom = box
        plot_left, plot_top, plot_right, plot_bottom = self.plot
        if left < plot_left or right > plot_right or top < plot_top or bottom > plot_bottom:
            return False
        pieces = (
            (x + (to_x - x) * piece / PIECES, y + (to_y - y) * piece / PIECES, not piece)
            for way in self.ways
            for (x, y), (to_x, to_y) in pairwise([*way, *way[-1:]])
            for piece in range(PIECES)
        )
        return not any(
            left - by < x < right + by and top - by < y < bottom + by
            for x, y, marked in pieces
            for by in [CLEARANCE_PX + CROSS_PX * marked]
        )


# ---- keys ----------------------------------------------------------------------------------------


def keys_of(figure: Figure, layout: Layout, below: float) -> list[str]:
    """What marks of all panels mean that are no backend's, in lines that fit, each 20 px high."""
    keys = [
        (cross(6, 0, "x", hollow=kind == "untried"), one.crosses(kind))
        for kind in CROSSED
        if (one := next((one for one in figure.panels if _has(one, kind)), None))
    ]
    if by_formula(figure.panels):
        keys.append((line(0, 0, 14, 0, "ln fm s-x"), "formula"))
    if any(any(one.busy) for panel in figure.panels for one in panel.series):
        keys.append((mark(0, 6, 0, RADIUS, "busy s-x"), "while other work ran"))
    lines, x = [""] * bool(keys), 0.0
    for sign, words in keys:
        wide = 18 + text_width(words, layout.text_px)
        if x and x + wide > layout.width:
            lines, x = [*lines, ""], 0.0
        y = below - 6 + 20 * len(lines)
        moved = f'<g transform="translate({x:.0f} {y:.0f})">{sign}</g>'
        lines[-1] += moved + text(x + 18, y + 4.5, words, "tk")
        x += wide + 14
    return lines


def by_formula(panels: Sequence[Panel]) -> bool:
    """Whether lines by formula are dashed, to tell them from measured ones."""
    return any(_has(one, "formula") and _has(one, "measured") for one in panels)


def _has(panel: Panel, kind: str) -> bool:
    return any(one.kind == kind for one in panel.series)
