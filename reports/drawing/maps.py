"""Draws maps of weights as SVG text: one square per head, all with one colour scale.

All in one pair of axes in inches: axes for each map would take matplotlib ten times as long.
"""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from ...harness.files.printable import visible
from ..elements import Map, Maps
from .canvas import INK, inline, page_svg, styled

COLOURS = "viridis"  # perceptually even, on white and on black paper
PER_LINE = 4
SIDE_IN, BESIDE_IN, ABOVE_IN = 1.25, 0.3, 0.38  # of a map, and the room for its numbers and name
LEFT_IN, BELOW_IN, RIGHT_IN = 0.25, 0.3, 0.8  # for labels, and for the scale
APART_IN = 0.05  # of a number and its map
BAR_IN, BAR_STEPS, BAR_TICKS = 0.1, 128, 5
MOST_TICKS = 4
SIZE = 8.5
STYLE = {"axes.grid": False, "font.size": SIZE, "image.composite_image": False}
Box = tuple[float, float, float, float]
"""Left, top, width and height in inches, from the upper left corner."""


def svg(maps: Maps, name: str) -> str:
    """SVG for the page; the same maps give the same bytes."""
    lines = ceil(len(maps.maps) / PER_LINE)
    across = min(PER_LINE, len(maps.maps))
    column, line = SIDE_IN + BESIDE_IN, SIDE_IN + ABOVE_IN
    width, height = LEFT_IN + column * across + RIGHT_IN, line * lines + BELOW_IN
    with styled(name, **STYLE):
        canvas = Canvas(figsize=(width, height))
        axes = canvas.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        highest = max(max(row) for one in maps.maps for row in one.rows) or 1.0
        for place, one in enumerate(maps.maps):
            left = LEFT_IN + place % PER_LINE * column + BESIDE_IN
            top = place // PER_LINE * line + ABOVE_IN / 2
            _map(axes, one, (left, top, SIDE_IN, SIDE_IN), highest)
            if place % PER_LINE == 0:
                _upright(axes, maps.y_label, SIZE / 72, top + SIDE_IN / 2)
            if place // PER_LINE == lines - 1:
                _centred(axes, maps.x_label, left + SIDE_IN / 2, top + SIDE_IN + BELOW_IN)
        box = (width - RIGHT_IN + 0.15, 0.1 * height, BAR_IN, 0.75 * height)
        _scale(axes, box, highest, maps.value_label)
        return inline(page_svg(canvas, name), maps, name)


def _map(axes: Axes, one: Map, box: Box, highest: float) -> None:
    left, top, width, height = box
    _image(axes, one.rows, box, highest)
    axes.text(left + width / 2, top - APART_IN, visible(one.label), ha="center", va="bottom")
    for x, tick in _ticks(left, width, len(one.rows[0])):
        axes.text(x, top + height + APART_IN, tick, ha="center", va="top")
    for y, tick in _ticks(top, height, len(one.rows)):
        axes.text(left - APART_IN, y, tick, ha="right", va="center")


def _scale(axes: Axes, box: Box, highest: float, label: str) -> None:
    left, top, width, height = box
    _image(axes, [[1 - step / BAR_STEPS] for step in range(BAR_STEPS + 1)], box, 1.0)
    for value in MaxNLocator(BAR_TICKS).tick_values(0.0, highest):
        if 0 <= value <= highest:
            y = top + height * (1 - value / highest)
            axes.text(left + width + APART_IN, y, f"{value:g}", ha="left", va="center")
    _upright(axes, label, left + width + 0.45, top + height / 2)


def _image(axes: Axes, rows: Sequence[Sequence[float]], box: Box, highest: float) -> None:
    left, top, width, height = box
    axes.imshow(
        rows,
        cmap=COLOURS,
        vmin=0,
        vmax=highest,
        interpolation="none",
        origin="upper",
        extent=(left, left + width, top + height, top),
        aspect="auto",
    )
    frame: dict[str, Any] = {"fill": False, "edgecolor": INK, "linewidth": 0.6}
    axes.add_patch(Rectangle((left, top), width, height, **frame))


def _ticks(start: float, size: float, count: int) -> Iterator[tuple[float, str]]:
    """The middle of some cells, and their number."""
    for tick in range(0, count, ceil(count / MOST_TICKS)):
        yield start + size * (tick + 0.5) / count, str(tick + 1)


def _upright(axes: Axes, text: str, x: float, y: float) -> None:
    axes.text(x, y, visible(text), ha="center", va="center", rotation=90)


def _centred(axes: Axes, text: str, x: float, y: float) -> None:
    axes.text(x, y, visible(text), ha="center", va="center")
