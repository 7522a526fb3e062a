"""Every picture as SVG, of one design. Most are drawn for wide and for narrow pages; CSS shows one.

`pages/pictures.css` has the styles. What is drawn on linear and on logarithmic axes has two radio
buttons that switch between them without a script.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

from ..elements import Bars, DotPlot, Drawable, Figure, Maps, Scale
from . import bars, chart, dot_plot, maps
from .marks import WIDTHS, Width
from .palette import KNOWN, Places, places_of

SCALES: tuple[Scale, ...] = ("linear", "log")  # N squared is a straight line on logarithmic axes
FEW = 2  # panels that are larger on a wide page


def drawn(picture: Drawable, backends: Sequence[str], name: str, cases: Mapping[str, int]) -> str:
    """Markup for the page, all foreign text escaped.

    `name`: unique on the page, for ids. `cases`: the number of each case on the page.
    """
    places = places_in(picture, backends)
    if isinstance(picture, Figure):
        if picture.both_scales:
            return _switched(picture, places, name, cases)
        return _panels(picture, places, "", cases)
    is_maps = isinstance(picture, Maps)
    widths = WIDTHS[:1] if is_maps else WIDTHS
    drawings = "".join(one for width in widths for one in svgs(picture, places, width, cases))
    return f'<div class="panels maps" tabindex="0">{drawings}</div>' if is_maps else drawings


def svgs(picture: Drawable, places: Places, width: Width, cases: Mapping[str, int]) -> list[str]:
    """Of each of its parts. Maps have one width."""
    match picture:
        case DotPlot():
            return [dot_plot.draw(picture, places, width)]
        case Bars():
            return [bars.draw(picture, places, width)]
        case Maps():
            return maps.draw(picture)
        case Figure():
            return chart.draw(picture, places, width, cases)


def _panels(figure: Figure, places: Places, classes: str, cases: Mapping[str, int]) -> str:
    count = len(figure.panels)
    widths = WIDTHS if count <= FEW else WIDTHS[1:]
    drawings = "".join(one for width in widths for one in chart.draw(figure, places, width, cases))
    return f'<div class="panels of-{min(count, FEW + 1)}{classes}">{drawings}</div>'


def places_in(picture: Drawable, backends: Sequence[str]) -> Places:
    """Of the page's backends, and of others that are known. Lines that are no backends have those
    of their figure.
    """
    if not isinstance(picture, Figure):
        return places_of(backends)
    if picture.names:
        return {name: place for place, name in enumerate(picture.names)}
    drawn = (one.backend for panel in picture.panels for one in panel.series)
    return {name: KNOWN[name] for name in drawn if name in KNOWN} | places_of(backends)


def _switched(figure: Figure, places: Places, name: str, cases: Mapping[str, int]) -> str:
    """Both scales; the first one is shown until the reader switches."""
    name = escape(name)
    switch = "".join(
        f'<input type="radio" class="{scale}" name="{name}-scale" id="{name}-{scale}"'
        f'{" checked" if scale == SCALES[0] else ""}><label for="{name}-{scale}">{scale}</label>'
        for scale in SCALES
    )
    drawings = "".join(
        _panels(on_scale(figure, scale), places, f" {scale}", cases) for scale in SCALES
    )
    return f'<div class="scales" role="group" aria-label="Axes">{switch}{drawings}</div>'


def on_scale(figure: Figure, scale: Scale) -> Figure:
    panels = (replace(one, x_scale=scale, y_scale=scale) for one in figure.panels)
    return replace(figure, panels=tuple(panels))
