"""Draws the tiles of a block: their place in the matrix of scores, and their share of each memory.

Both are to scale: the sides of a tile are its rows and columns, its part of a memory its bytes.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from ..elements import MemoryStore, Piece, TileMap, TilePanel
from .marks import coordinate, line, rect, safe, shortened, svg, text, text_width

Width = Literal["wide", "narrow"]
MATRIX_TILES = 4  # so many of the larger tiles the drawn matrix has on a side
GAP = 5.0  # between the matrix and the tensors at its sides
EDGE = 1.0  # room for the lines at the left
MATRIX_PX = 178.0  # of the matrix with both tensors at its sides
LABEL_PX, HEADING_PX = 14.0, 14.0  # on narrow drawings; smaller on wide ones
STRIP_PX, STORE_PX = 26.0, 76.0  # height of a memory, and from one to the next
HEAD_PX, AXES_PX, BELOW_PX = 50.0, 14.0, 20.0  # heading and remark; axes; space below


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Measures in units of the view box. `beside`: memories stand beside the matrix."""

    width: float
    strips: float
    beside: bool


LAYOUTS: dict[Width, Layout] = {
    "wide": Layout(width=556, strips=208, beside=True),
    "narrow": Layout(width=326, strips=1, beside=False),
}


def draw(tiles: TileMap, width: Width) -> str:
    """SVG text."""
    layout = LAYOUTS[width]
    pixels = min(map(_matrix_scale, tiles.panels), default=1.0)
    capacity = max((store.capacity for panel in tiles.panels for store in panel.stores), default=1)
    room = layout.width - layout.strips - 1
    y, parts = 0.0, []
    for place, panel in enumerate(tiles.panels):
        if place:
            parts.append(line(0, y, layout.width, y, "sep"))
            y += 8
        parts.append(text(0, y + 16, shortened(panel.heading, layout.width, HEADING_PX), "pt"))
        parts.append(text(0, y + 35, shortened(panel.remark, layout.width, 13.0, 0.6), "sub"))
        y += HEAD_PX
        parts.append(_matrix(panel, pixels, y))
        bottom = y + _matrix_height(panel, pixels)
        down = y if layout.beside else bottom + BELOW_PX
        for store in panel.stores:
            parts.append(_store(store, layout.strips, down, room / capacity))
            down += STORE_PX
        y = max(down, bottom + BELOW_PX if layout.beside else down)
    return svg(layout.width, y, f"tiles {width}", tiles.description, "".join(parts))


def _side(panel: TilePanel) -> int:
    return MATRIX_TILES * max(panel.queries, panel.keys)


def _matrix_scale(panel: TilePanel) -> float:
    """Pixels per query, key or column of a head."""
    return MATRIX_PX / (_side(panel) + panel.d_k + panel.d_v)


def _matrix_height(panel: TilePanel, pixels: float) -> float:
    return AXES_PX + 2 * GAP + (_side(panel) + panel.d_k + panel.d_v) * pixels


def _matrix(panel: TilePanel, pixels: float, top: float) -> str:
    """Scores with queries down and keys across; Q to the left, O right, K above, V below."""
    side = _side(panel)
    first = 2 * panel.queries  # the tile that is drawn: the third, in the middle
    step = max(first // panel.keys - 1, 0)
    left, upper = EDGE + panel.d_k * pixels + GAP, top + AXES_PX + panel.d_k * pixels + GAP
    long = side * pixels
    # the matrix, the tensors beside it, and the tile in all of them
    row, high = upper + first * pixels, panel.queries * pixels
    column, wide = left + step * panel.keys * pixels, panel.keys * pixels
    parts = [text(0, top + 6, "queries ↓  keys →", "src")]
    parts.append(rect(left, upper, long, long, "frame"))
    if panel.causal:
        way = f"M{coordinate(left)} {coordinate(upper)}l{coordinate(long)} {coordinate(long)}"
        parts.append(f'<path class="guide dash" d="{way}"/>')
    if step:
        parts.append(rect(left, row, column - left, high, "k-softmax done"))
    parts.append(rect(left, row, long, high, "frame"))
    parts.append(_box(column, row, wide, high, "softmax", "S"))
    arrow = column + wide + 4, left + long - 4
    if arrow[1] - arrow[0] > 8:
        parts.append(line(arrow[0], row + high / 2, arrow[1], row + high / 2, "guide"))
        head = f"M{coordinate(arrow[1] - 5)} {coordinate(row + high / 2 - 4)}l5 4l-5 4"
        parts.append(f'<path class="guide" d="{head}"/>')
    deep, flat = panel.d_v * pixels, panel.d_k * pixels
    below, right = upper + long + GAP, left + long + GAP
    parts += [rect(EDGE, upper, flat, long, "frame"), _box(EDGE, row, flat, high, "query", "Q")]
    parts += [rect(right, upper, deep, long, "frame"), _box(right, row, deep, high, "product", "O")]
    over = upper - GAP - flat
    parts += [rect(left, over, long, flat, "frame"), _box(column, over, wide, flat, "load", "K")]
    parts += [rect(left, below, long, deep, "frame"), _box(column, below, wide, deep, "load", "V")]
    return "".join(parts)


def _store(store: MemoryStore, left: float, top: float, pixels: float) -> str:
    """`pixels`: per unit of the store."""
    parts = [text(left, top + 6, store.label, "lb")]
    upper = top + 13
    parts.append(rect(left, upper, store.capacity * pixels, STRIP_PX, "frame"))
    ends = accumulate((piece.size for piece in store.pieces), initial=0.0)
    for piece, start in zip(store.pieces, ends, strict=False):
        parts.append(_piece(piece, left + start * pixels, upper, piece.size * pixels))
    parts.append(text(left, upper + STRIP_PX + 16, store.note, "src"))
    return "".join(parts)


def _piece(piece: Piece, x: float, y: float, width: float) -> str:
    if not piece.block:
        return _box(x, y, width, STRIP_PX, piece.look, piece.label)
    title = f"<title>{safe(piece.label)}</title>"
    return rect(x, y, width, STRIP_PX, f"k-{piece.look} again").replace("/>", f">{title}</rect>")


def _box(x: float, y: float, width: float, height: float, look: str, label: str) -> str:
    """A tile with its name, if there is room for it."""
    parts = [rect(x, y, width, height, f"k-{look}")]
    if text_width(label, LABEL_PX) + 3 <= width and height >= LABEL_PX - 1:
        on = "on" if look == "product" else "in"
        parts.append(text(x + width / 2, y + height / 2 + 4.5, label, on, "middle"))
    return "".join(parts)
