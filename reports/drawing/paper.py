"""Pictures as files of their own, black on white: the page's SVG with its styles, or the same drawn
by matplotlib as PNG or PDF.

matplotlib reads what `marks.py` writes: paths of straight lines, circles, boxes, texts and images.
"""

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.image
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.patheffects import withStroke

from ...harness.files.printable import visible
from ..elements import DotPlot, Drawable
from .marks import wrapped
from .picture import places_in, svgs

CSS = Path(__file__).parents[1] / "pages" / "pictures.css"
POINTS = 0.75  # of a unit of the drawings, a pixel of the page
ACROSS, GAP, TITLE_PX, LINE_PX = 3, 22.0, 15.0, 20.0
FONT: dict[Any, Any] = {
    "font.family": "sans-serif",
    "svg.fonttype": "none",
    "text.parse_math": False,
}
BOX = ("x", "y", "width", "height")
MOVES = re.compile(r"([MLHVlz])([^MLHVlz]*)")
Style = dict[str, str]


def save(picture: Drawable, backends: Sequence[str], path: Path, dpi: int) -> None:
    """Write the picture with its title, in the format of the suffix."""
    parts = svgs(picture, places_in(picture, backends), "wide", {})
    drawing = _sheet(picture, parts)
    if path.suffix == ".svg":
        path.write_text(drawing, encoding="utf-8")
        return
    root = _parsed(drawing)
    width, height = _size(root)
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(FONT)
        canvas = Canvas(figsize=(width * POINTS / 72, height * POINTS / 72))
        axes = canvas.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        _place(axes, root, (0.0, 0.0))
        dateless = {"CreationDate": None} if path.suffix == ".pdf" else {}
        canvas.savefig(path, dpi=dpi, facecolor="white", metadata=dateless)


def _sheet(picture: Drawable, parts: Sequence[str]) -> str:
    """One SVG of all parts, side by side in lines, below the title."""
    sizes = [_size(_parsed(part)) for part in parts]
    across = max(1, min(ACROSS, len(parts)))
    column, line = (max(size[of] for size in sizes) + GAP for of in (0, 1))
    width = across * column + GAP
    title = "" if isinstance(picture, DotPlot) else picture.title
    said = wrapped(title, width - 2 * GAP, TITLE_PX) if title else []
    top = GAP + LINE_PX * len(said)
    height = top + line * -(-len(parts) // across)
    placed = "".join(
        f'<g transform="translate({GAP + column * (place % across):g} '
        f'{top + line * (place // across):g})">{_inside(part)}</g>'
        for place, part in enumerate(parts)
    )
    titles = "".join(
        f'<text class="pt" x="{GAP:g}" y="{GAP + LINE_PX * place:g}">{escape(one)}</text>'
        for place, one in enumerate(said)
    )
    about = f"<title>{escape(visible(title))}</title><style>{_light()}</style>"
    box = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<svg xmlns="http://www.w3.org/2000/svg"'
        f' class="pic" font-family="sans-serif" {box}>{about}{titles}{placed}</svg>\n'
    )


def _inside(part: str) -> str:
    """Without strips: a file has no pointer."""
    inner = part[part.index(">") + 1 : part.rindex("</svg>")]
    return re.sub(r'<rect class="at".*?</rect>', "", inner, flags=re.DOTALL)


def _parsed(drawing: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawing)  # noqa: S314 - our own, all foreign text escaped


def _size(drawing: ElementTree.Element) -> tuple[float, float]:
    _, _, width, height = map(float, drawing.get("viewBox", "0 0 1 1").split())
    return width, height


# ---- the style sheet -----------------------------------------------------------------------------


def _light() -> str:
    """The rules of pictures, without those for dark, narrow and printed pages."""
    every = CSS.read_text(encoding="utf-8").partition("/* Which version")[0]
    return re.sub(r"/\*.*?\*/|@media[^{]*\{(?:[^{}]*\{[^}]*\})*\s*\}", "", every, flags=re.DOTALL)


@cache
def _rules() -> tuple[tuple[frozenset[str], str, Mapping[str, str]], ...]:
    """Classes that an element must have, its tag or "", and what is declared, in order."""
    text = _light()
    known = dict(re.findall(r"(--[\w-]+): ([^;}]+)", text))
    found = []
    for selectors, body in re.findall(r"([^{}]+)\{([^}]*)\}", text):
        pairs = (one.partition(":") for one in body.split(";") if ":" in one)
        style = {
            name.strip(): re.sub(r"var\((.*?)\)", lambda at: known[at[1]], value.strip())
            for name, _, value in pairs
            if not name.strip().startswith("--")
        }
        for selector in selectors.split(","):
            last = selector.split()[-1] if selector.split() else ""
            tag, *classes = last.split(".")
            if ":" not in last and ">" not in selector:
                found.append((frozenset(classes), tag, style))
    return tuple(found)


def _style(element: ElementTree.Element) -> Style:
    classes = set(element.get("class", "").split())
    tag = element.tag.rpartition("}")[2]
    style: Style = {}
    for wanted, of_tag, declared in sorted(_rules(), key=lambda rule: bool(rule[0])):
        if wanted <= classes and of_tag in ("", tag) and (wanted or of_tag):
            style |= declared
    return style


# ---- matplotlib ----------------------------------------------------------------------------------


def _place(axes: Any, element: ElementTree.Element, at: tuple[float, float]) -> None:
    tag, order = element.tag.rpartition("}")[2], len(axes.get_children())
    if tag in ("svg", "g"):
        moved = re.match(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
        dx, dy = (float(moved[1]), float(moved[2])) if moved else (0.0, 0.0)
        for child in element:
            _place(axes, child, (at[0] + dx, at[1] + dy))
    elif tag == "text":
        _text(axes, element, at, order)
    elif tag == "image":
        left, top, right, bottom = _box(element, at)
        data = b64decode(element.get("href", "").partition(",")[2])
        pixels = matplotlib.image.imread(BytesIO(data), format="png")
        extent = (left, right, bottom, top)
        axes.imshow(pixels, extent=extent, interpolation="none", aspect="auto", zorder=order)
    elif tag in ("path", "rect", "circle"):
        style = _style(element)
        wide = float(style.get("stroke-width", "1").removesuffix("px"))
        axes.add_patch(
            PathPatch(
                _outline(element, tag, at),
                facecolor=style.get("fill", "black"),
                edgecolor=style.get("stroke", "none"),
                linewidth=POINTS * wide if "stroke" in style else 0,
                linestyle=_dashes(style, wide),
                alpha=float(style.get("opacity", "1")),
                zorder=order,
            )
        )


def _dashes(style: Style, wide: float) -> Any:
    dashes = [float(one) for one in style.get("stroke-dasharray", "").split()]
    return (0, [one / wide for one in dashes]) if dashes else "-"


def _text(axes: Any, element: ElementTree.Element, at: tuple[float, float], order: int) -> None:
    style = _style(element)
    size = float(style.get("font-size", "13px").removesuffix("px")) * POINTS
    anchor = {"middle": "center", "end": "right"}.get(element.get("text-anchor", ""), "left")
    drawn = axes.text(
        at[0] + float(element.get("x", "0")),
        at[1] + float(element.get("y", "0")),
        (element.text or "") + "".join(f"   {small.text}" for small in element),
        fontsize=size,
        color=style.get("fill", "black"),
        fontweight="bold" if style.get("font-weight") == "600" else "normal",
        fontstyle=style.get("font-style", "normal"),
        ha=anchor,
        va="baseline",
        zorder=order,
    )
    if "stroke" in style:
        drawn.set_path_effects([withStroke(linewidth=3, foreground=style["stroke"])])


def _outline(element: ElementTree.Element, tag: str, at: tuple[float, float]) -> Outline:
    if tag == "circle":
        x, y, radius = (float(element.get(name, "0")) for name in ("cx", "cy", "r"))
        return Outline.circle((at[0] + x, at[1] + y), radius)
    if tag == "rect":
        left, top, right, bottom = _box(element, at)
        corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        return Outline(corners, closed=True)
    return _path(element.get("d", ""), at)


def _box(element: ElementTree.Element, at: tuple[float, float]) -> tuple[float, ...]:
    """Left, top, right, bottom."""
    x, y, width, height = (float(element.get(name, "0")) for name in BOX)
    return at[0] + x, at[1] + y, at[0] + x + width, at[1] + y + height


def _path(way: str, at: tuple[float, float]) -> Outline:
    points, codes = [(0.0, 0.0)], [Outline.MOVETO]
    x = y = 0.0
    for sign, text in MOVES.findall(way):
        numbers = [float(one) for one in text.split()]
        if sign == "z":
            points.append(points[-1])
            codes.append(Outline.CLOSEPOLY)
            continue
        for place in range(0, len(numbers), 1 if sign in "HV" else 2):
            if sign == "H":
                x = numbers[place] + at[0]
            elif sign == "V":
                y = numbers[place] + at[1]
            elif sign == "l":
                x, y = x + numbers[place], y + numbers[place + 1]
            else:
                x, y = numbers[place] + at[0], numbers[place + 1] + at[1]
            points.append((x, y))
            codes.append(Outline.MOVETO if sign == "M" and place == 0 else Outline.LINETO)
    return Outline(points[1:], codes[1:])
