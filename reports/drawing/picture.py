"""Every picture, of one design: as SVG in a page, for wide and for narrow ones, of which CSS shows
one; and as a file of its own, black on white.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...harness.files.printable import visible
from ..elements import Bars, DotPlot, Drawable, Figure, Maps
from .palette import COLOURS, KNOWN, Places, places_of

if TYPE_CHECKING:
    from .sheet import Sheet, Width

WIDTHS: tuple["Width", ...] = ("wide", "narrow")
FEW = 2  # panels that are larger on a wide page
ACROSS, GAP, TITLE_PX, TITLE_LINE = 3, 22.0, 15.0, 20.0  # of the parts of a file
PIXEL_POINTS = 0.75  # of a file


STYLE: Mapping[Any, Any] = {
    "svg.fonttype": "none",  # texts stay texts
    "svg.hashsalt": "attnbench",
    "text.parse_math": False,  # a backend may be called $x$
}


def drawn(picture: Drawable, backends: Sequence[str], name: str) -> str:
    """Markup for the page, all foreign text escaped. `name`: unique on the page, for ids."""
    places, name = places_in(picture, backends), escape(name)
    with drawing():
        if isinstance(picture, Figure):
            count = len(picture.panels)
            widths = WIDTHS if count <= FEW else WIDTHS[1:]
            made = "".join(one for width in widths for one in svgs(picture, places, name, width))
            return f'<div class="panels of-{min(count, FEW + 1)}">{made}</div>'
        if isinstance(picture, Maps):
            made = "".join(svgs(picture, places, name, "wide"))
            return f'<div class="panels maps" tabindex="0">{made}</div>'
        return "".join(one for width in WIDTHS for one in svgs(picture, places, name, width))


def svgs(picture: Drawable, places: Places, name: str, width: "Width") -> list[str]:
    """Of each of its parts, inside `drawing()`. Maps have one width."""
    return [
        sheet.svg(classes, said, f"{name}-{width}{number}-")
        for number, (sheet, classes, said) in enumerate(_parts(picture, places, width))
    ]


def save(picture: Drawable, backends: Sequence[str], path: Path, dpi: int) -> None:
    """Write the picture with its title, in the format of the suffix: svg, png or pdf."""
    with drawing():
        from matplotlib.figure import Figure as Canvas

        from .sheet import DPI, Sheet, wrapped

        canvas = Canvas(dpi=DPI)
        parts = _parts(picture, places_in(picture, backends), "wide", canvas)
        sheets = [sheet for sheet, *_ in parts]
        across = max(1, min(ACROSS, len(sheets)))
        column = GAP + max(one.width for one in sheets)
        row = GAP + max(one.height for one in sheets)
        heading = Sheet(across * column - GAP, canvas)
        title = "" if isinstance(picture, DotPlot) else visible(picture.title)
        said = wrapped(title, heading.width, TITLE_PX)
        for place, one in enumerate(said):
            heading.text(0, TITLE_LINE * place, one, COLOURS["p-ink"], TITLE_PX, weight="bold")
        top = GAP + TITLE_LINE * len(said)
        height = top + row * -(-len(sheets) // across)
        canvas.set_size_inches((across * column + GAP) / DPI, height / DPI)
        heading.place(GAP, GAP)
        for place, sheet in enumerate(sheets):
            sheet.place(GAP + column * (place % across), top + row * (place // across))
        dateless = {".svg": {"Date": None, "Title": title}, ".pdf": {"CreationDate": None}}
        canvas.savefig(path, dpi=PIXEL_POINTS * dpi, metadata=dateless.get(path.suffix))


def _parts(
    picture: Drawable, places: Places, width: "Width", canvas: Any = None
) -> list[tuple["Sheet", str, str]]:
    """Each sheet, its classes on a page and what it is called there."""
    from . import bars, lines, maps
    from .sheet import Sheet

    new_sheet = partial(Sheet, canvas=canvas)

    match picture:
        case Bars() | DotPlot():
            sheet = bars.draw(picture, places, width, new_sheet)
            return [(sheet, f"bars {width}", picture.description)]
        case Maps():
            *squares, scale = maps.draw(picture, new_sheet)
            named = zip(squares, picture.maps, strict=True)
            found = [(one, "map", f"{of.label}. {picture.description}") for one, of in named]
            return [*found, (scale, "map scale", f"Colours of {picture.value_label}")]
        case Figure():
            sheets = lines.draw(picture, places, width, new_sheet)
            said = map(picture.description, picture.panels)
            return [(one, f"chart {width}", of) for one, of in zip(sheets, said, strict=True)]


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


@contextmanager
def drawing() -> Iterator[None]:
    """With its defaults and this style, whatever the user's are.

    It says nothing of a home where it cannot keep its list of fonts (it takes a folder that is gone
    at exit), nor of letters that its font lacks: browsers have others.
    """
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        import matplotlib as mpl

        with mpl.rc_context(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mpl.rcdefaults()
            mpl.rcParams.update(STYLE)
            yield
    finally:
        log.setLevel(level)
