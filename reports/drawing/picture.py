"""Every picture as SVG. Those of cards are drawn for wide and for narrow pages; CSS shows one.

`pages/pictures.css` has the styles. The wall is drawn on logarithmic and on linear axes too, with
two radio buttons that switch between them without a script.
"""

from collections.abc import Mapping, Sequence
from html import escape

from ..elements import Bars, DotPlot, Drawable, Figure, Maps, Scale, WallChart
from . import bars, dot_plot, maps, plots, wall_chart
from .marks import WIDTHS, Width

SCALES: tuple[Scale, ...] = ("log", "linear")


def drawn(picture: Drawable, backends: Sequence[str], name: str, cases: Mapping[str, int]) -> str:
    """Markup for the page, all foreign text escaped.

    `name`: unique on the page, for ids. `cases`: the number of each case on the page.
    """
    match picture:
        case Figure():
            return plots.svg(picture, backends, name, cases)
        case Maps():
            return maps.svg(picture, name)
        case Bars():
            return bars.svg(picture, name)
        case WallChart():
            return "".join(_switched(picture, backends, name, width) for width in WIDTHS)
        case DotPlot():
            return "".join(dot_plot.draw(picture, backends, width) for width in WIDTHS)


def _switched(chart: WallChart, backends: Sequence[str], name: str, width: Width) -> str:
    """Both scales; the logarithmic one is shown first."""
    name = escape(f"{name}-{width}")
    switch = "".join(
        f'<input type="radio" class="{scale}" name="{name}-scale" id="{name}-{scale}"'
        f'{" checked" if scale == "log" else ""}><label for="{name}-{scale}">{scale}</label>'
        for scale in SCALES
    )
    drawings = "".join(wall_chart.draw(chart, backends, width, scale) for scale in SCALES)
    return f'<div class="scales {width}" role="group" aria-label="Axes">{switch}{drawings}</div>'
