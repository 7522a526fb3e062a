"""Draws maps of weights as SVG text: one square per head, darker for more, with one scale for all
of them.
"""

from collections.abc import Sequence
from io import StringIO
from math import ceil

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.image import AxesImage

from ..elements import Map, Maps
from ..formatting import visible
from .plots import STYLE, inline
from .svg_minify import compact

COLOURS = "viridis"  # even steps for every eye, and on white and black paper alike
PER_LINE = 4
SIDE_IN = 1.55
MOST_TICKS = 4


def svg(maps: Maps, name: str) -> str:
    """`name` makes the ids of this figure its own; the same maps give the same bytes."""
    lines = ceil(len(maps.maps) / PER_LINE)
    across = min(PER_LINE, len(maps.maps))
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(
            {
                **STYLE,
                "axes.grid": False,
                "svg.hashsalt": name,
                "font.size": 8.5,
                "image.composite_image": False,
            }
        )
        canvas = Canvas(
            figsize=(SIDE_IN * across + 0.9, (SIDE_IN + 0.3) * lines + 0.3), layout="constrained"
        )
        axes = canvas.subplots(lines, across, squeeze=False)
        highest = max(max(row) for one in maps.maps for row in one.rows)
        drawn = None
        for place, where in enumerate(axes.flat):
            if place < len(maps.maps):
                drawn = _map(
                    where,
                    maps.maps[place],
                    highest,
                    first=place % PER_LINE == 0,
                    last=place // PER_LINE == lines - 1,
                    of=maps,
                )
            else:
                where.set_axis_off()
        if drawn is not None:
            canvas.colorbar(drawn, ax=axes, label=visible(maps.value_label), shrink=0.9, aspect=30)
        text = StringIO()
        canvas.savefig(
            text, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    return inline(compact(text.getvalue(), name, styled=True), maps, name)


def _map(axes: Axes, one: Map, highest: float, *, first: bool, last: bool, of: Maps) -> AxesImage:
    drawn = axes.imshow(
        one.rows, cmap=COLOURS, vmin=0, vmax=highest, interpolation="none", origin="upper"
    )
    axes.set_title(visible(one.label), fontsize=8.5)
    ticks = _ticks(len(one.rows[0]))
    axes.set_xticks(ticks, [str(tick + 1) for tick in ticks])
    ticks = _ticks(len(one.rows))
    axes.set_yticks(ticks, [str(tick + 1) for tick in ticks])
    if first:
        axes.set_ylabel(visible(of.y_label))
    if last:
        axes.set_xlabel(visible(of.x_label))
    return drawn


def _ticks(count: int) -> Sequence[int]:
    step = ceil(count / MOST_TICKS)
    return range(0, count, step)
