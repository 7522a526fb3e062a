"""What all drawings by matplotlib share: the style, and a canvas as a file of its own or as SVG of
the page, small and safe to inline: a page of 500 cases has two dozen drawings.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from io import StringIO
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from ...harness.files.printable import visible
from ..elements import Bars, Figure, Maps

# Text, axes and grid are drawn in this colour; it becomes currentColor, the colour of the page's
# text.
INK = "#010203"
FONT_SIZE = 9.5
GRID_OPACITY, GRID_WIDTH = 0.18, 0.6
_TAG = re.compile(r"<(?:path|use|g|text)\s[^>]*>")
_MARKS = re.compile(r'<g([^>]*)>((?:<use [^>]*style="([^"]*)"/>)+)</g>')
_LONG = re.compile(r"\d+\.\d{3,}")
_GRID = f"stroke-opacity: {GRID_OPACITY}; stroke-width: {GRID_WIDTH}"
TITLE_IN = 0.5  # room for the title of a figure in a file of its own
LETTER_IN = 0.075
# Safe for colour-blind readers (Okabe-Ito and Tol). The page's style sheet has the same as --b0 to
# --b8, and lighter ones for dark pages: contrast is 3:1 or better on both.
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#A8487F", "#7A6000"),
    *("#4477AA", "#C2405A", "#228833", "#6B6F7B"),
)
_PLACES = {colour.lower(): place for place, colour in enumerate(COLOURS)}
GREY = "#717581"  # of what belongs to no backend
STYLE: dict[Any, Any] = {
    "font.size": FONT_SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.18,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.parse_math": False,  # names may contain dollar signs
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color", "grid.color"), INK),
}


@contextmanager
def styled(name: str, **changes: Any) -> Iterator[None]:
    """Our style in place of the reader's matplotlibrc; `name` makes the ids of an SVG its own."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE | {"svg.hashsalt": name, **changes})
        yield


def page_svg(canvas: Canvas, name: str) -> str:
    """The same bytes every time, with the page's colours, which follow its light or dark scheme."""
    text = StringIO()
    canvas.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})

    def variable(found: re.Match[str]) -> str:
        place = _PLACES.get(found[2].lower())
        return found.group() if place is None else f"{found[1]}var(--b{place})"

    small = minify(text.getvalue(), name)
    return re.sub(r"((?:fill|stroke): )(#[0-9a-fA-F]{6})", variable, small)


def save(canvas: Canvas, title: str, path: Path, dpi: int) -> None:
    """Write the canvas with its title, black on white, in the format of the suffix."""
    width = int(canvas.get_figwidth() / LETTER_IN)
    canvas.suptitle(fill(visible(title), width), fontsize=FONT_SIZE)
    dateless = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}
    canvas.savefig(path, dpi=dpi, facecolor="white", metadata=dateless.get(path.suffix[1:]))


def inline(text: str, figure: Figure | Maps | Bars, name: str, points: str = "") -> str:
    """The SVG for a page: with a name for screen readers, and `points` above everything else."""
    text = re.sub(rf'id="({name}-b(\d+)-[^"]*)"', r'id="\1" data-b="\2"', text)
    box = re.search(r'viewBox="[^"]*"', text)
    named = f'role="img" aria-labelledby="{name}-title {name}-desc"'
    fonts = (
        'xmlns:xlink="http://www.w3.org/1999/xlink" font-family="sans-serif"'
        f' font-size="{FONT_SIZE}"'
    )
    head = f"<svg {box.group() if box else ''} {fonts} {named}>"
    title, description = escape(visible(figure.title)), escape(visible(figure.description))
    head += f'<title id="{name}-title">{title}</title><desc id="{name}-desc">{description}</desc>'
    return re.sub(r"^<svg[^>]*>", lambda _: head, text).replace("</svg>", f"{points}</svg>")


# ---- a small SVG ---------------------------------------------------------------------------------


def minify(text: str, name: str) -> str:
    """The SVG without prologue, style sheet and comments, and without the common styles of text and
    grid lines, which the page's style sheet has; ids that are used begin with `name`.
    """
    text = text[text.index("<svg") :]
    text = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL
    )
    text = _TAG.sub(lambda tag: _short(tag.group()), text)
    text = re.sub(r">\s+<", "><", text)
    # invisible backgrounds
    text = re.sub(r'<g id="[^"]*"><path d="[^"]*" style="fill: none"/></g>|<defs></defs>', "", text)
    return _without_empty_groups(_named(_MARKS.sub(_hoisted, text), name)).replace(
        INK, "currentColor"
    )


def _short(tag: str) -> str:
    """A tag with coordinates to a hundredth of a point."""
    tag = re.sub(r"\s+", " ", tag)
    tag = _LONG.sub(lambda number: f"{float(number.group()):.2f}".rstrip("0").rstrip("."), tag)
    if _GRID in tag:
        return re.sub(r' (?:clip-path|style)="[^"]*"', "", tag).replace(
            "<path", '<path class="grid"'
        )
    if tag.startswith("<text"):
        tag = re.sub(rf' ?(?:font-family: [^;"]*|font-size: {FONT_SIZE}px|fill: {INK});?', "", tag)
        tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
    return tag


def _hoisted(found: re.Match[str]) -> str:
    """Move a style that all markers of a line share to the group around them."""
    style = f' style="{found[3]}"'
    return (
        f"<g{found[1]}{style}>{found[2].replace(style, '')}</g>"
        if found[2].count(style) == found[2].count("<use ")
        else found.group()
    )


def _named(text: str, name: str) -> str:
    """Drop unused ids, except those of series and of the whole figure; shorten the others."""
    used = dict.fromkeys(re.findall(r'(?:xlink:href="#|url\(#)([^")]*)', text))
    short = {old: f"{name}-{place}" for place, old in enumerate(used)} | {
        "figure_1": f"{name}-figure"
    }

    def own(found: re.Match[str]) -> str:
        known = short.get(found[1]) or (
            f"{name}-{found[1]}" if re.match(r"b\d", found[1]) else None
        )
        return "" if known is None else f' id="{known}"'

    text = re.sub(r' id="([^"]*)"', own, text)
    return re.sub(r'(xlink:href="#|url\(#)([^")]*)', lambda found: found[1] + short[found[2]], text)


def _without_empty_groups(text: str) -> str:
    """Remove groups without attributes: a drawing has hundreds."""
    kept: list[bool] = []

    def own(tag: re.Match[str]) -> str:
        if tag.group() != "</g>":
            kept.append(tag.group() != "<g>")
            return tag.group() if kept[-1] else ""
        return tag.group() if kept.pop() else ""

    return re.sub(r"<g>|<g [^>]*>|</g>", own, text)
