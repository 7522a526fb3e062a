"""Draws maps of weights as SVG text: one square per head, all with one colour scale."""

from collections.abc import Sequence
from math import ceil

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.image import AxesImage

from ...harness.printable import visible
from ..elements import Map, Maps
from .canvas import inline, styled, svg_text
from .svg_minify import minify

COLOURS = "viridis"  # perceptually even, on white and on black paper
PER_LINE = 4
SIDE_IN = 1.55
MOST_TICKS = 4
SIZE = 8.5
STYLE = {"axes.grid": False, "font.size": SIZE, "image.composite_image": False}


def svg(maps: Maps, name: str) -> str:
    """SVG for the page; the same maps give the same bytes."""
    lines = ceil(len(maps.maps) / PER_LINE)
    across = min(PER_LINE, len(maps.maps))
    with styled(name, **STYLE):
        size = (SIDE_IN * across + 0.9, (SIDE_IN + 0.3) * lines + 0.3)
        canvas = Canvas(figsize=size, layout="constrained")
        axes = canvas.subplots(lines, across, squeeze=False)
        highest = max(max(row) for one in maps.maps for row in one.rows)
        image = None
        for place, where in enumerate(axes.flat):
            if place >= len(maps.maps):
                where.set_axis_off()
                continue
            image = _map(where, maps.maps[place], highest)
            if place % PER_LINE == 0:
                where.set_ylabel(visible(maps.y_label))
            if place // PER_LINE == lines - 1:
                where.set_xlabel(visible(maps.x_label))
        if image is not None:
            canvas.colorbar(image, ax=axes, label=visible(maps.value_label), shrink=0.9, aspect=30)
        return inline(minify(svg_text(canvas), name, styled=True), maps, name)


def _map(axes: Axes, one: Map, highest: float) -> AxesImage:
    image = axes.imshow(
        one.rows, cmap=COLOURS, vmin=0, vmax=highest, interpolation="none", origin="upper"
    )
    axes.set_title(visible(one.label), fontsize=SIZE)
    for set_ticks, count in ((axes.set_xticks, len(one.rows[0])), (axes.set_yticks, len(one.rows))):
        ticks = _ticks(count)
        set_ticks(ticks, [str(tick + 1) for tick in ticks])
    return image


def _ticks(count: int) -> Sequence[int]:
    return range(0, count, ceil(count / MOST_TICKS))
