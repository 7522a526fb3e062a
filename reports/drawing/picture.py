"""A card's picture as SVG, drawn twice: for wide and for narrow pages; CSS shows one of them.

`pages/pictures.css` has the styles. The wall is drawn on logarithmic and on linear axes too, with
two radio buttons that switch between them without a script.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ..elements import DotPlot, Figure, Picture, Scale, Table, WallChart
from . import dot_plot, plots, wall_chart
from .wall_axes import Width

SCALES: tuple[Scale, ...] = ("log", "linear")


class Drawn(NamedTuple):
    """`narrow`: "" if there is only one version."""

    wide: str
    narrow: str


def drawn(picture: Picture, backends: Sequence[str], name: str) -> Drawn | None:
    """Markup for the page, all foreign text escaped; None for a table, which pages draw themselves.

    `name`: unique on the page, for ids.
    """
    match picture:
        case Table():
            return None
        case Figure():
            return Drawn(plots.svg(picture, backends, name, {}), "")  # the page has the legend
        case WallChart():
            wide, narrow = (
                _switched(picture, backends, f"{name}-{width}", width)
                for width in ("wide", "narrow")
            )
            return Drawn(wide, narrow)
        case DotPlot():
            return Drawn(
                dot_plot.draw(picture, backends, "wide"), dot_plot.draw(picture, backends, "narrow")
            )


def _switched(chart: WallChart, backends: Sequence[str], name: str, width: Width) -> str:
    """Both scales; the logarithmic one is shown first."""
    switch = "".join(
        f'<input type="radio" class="{scale}" name="{escape(name)}-scale"'
        f' id="{escape(name)}-{scale}"{" checked" if scale == "log" else ""}>'
        f'<label for="{escape(name)}-{scale}">{scale}</label>'
        for scale in SCALES
    )
    drawings = "".join(wall_chart.draw(chart, backends, width, scale) for scale in SCALES)
    return f'<div class="scales {width}" role="group" aria-label="Axes">{switch}{drawings}</div>'
