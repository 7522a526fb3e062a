"""A drawing in pixels from its upper left corner, made of matplotlib's artists.

It is a whole SVG of a page, or a part of a file. Texts are measured in matplotlib's own DejaVu
Sans, the widest of common fonts, and stay texts.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from io import StringIO
from textwrap import TextWrapper
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, Bbox, TransformedBbox

from ...harness.files.printable import visible
from .palette import COLOURS, Places
from .svg import compact, element

Width = Literal["wide", "narrow"]
Box = tuple[float, float, float, float]  # left, top, width, height
INK, MUTE, CARD = COLOURS["p-ink"], COLOURS["p-mute"], COLOURS["p-card"]
MARKERS = "os^DvPp"  # of the first seven places
DPI = 72  # so that a point of matplotlib is a pixel
FONT = "DejaVu Sans"
TEXT_PX, NAME_PX, LINE_PX = 13.0, 14.0, 15.0
MOST_LINES = 5  # of one name
LETTER_EM = {"bold": 0.66, "normal": 0.58}  # of its common letters
WRITTEN = {"center": "middle", "right": "end", "bold": "600", True: "halo"}  # in SVG
DATELESS = dict.fromkeys(("Date", "Creator", "Format", "Type"))


class Sheet:
    """`canvas`: of the file that it is a part of; else it is an SVG of a page."""

    def __init__(self, width: float, canvas: Figure | None = None) -> None:
        self.width, self.height = width, 0.0  # it is set when all is drawn
        self.canvas = canvas or Figure(dpi=DPI)
        self._is_page = canvas is None
        self._words: list[str] = []  # of a page, which lays them out itself
        self._inches = Affine2D()
        self._pixels = self._inches + self.canvas.dpi_scale_trans
        self._images: list[tuple[Axes, Box]] = []

    def text(
        self, x: float, y: float, words: str, color: str = MUTE, size: float = TEXT_PX, **look: Any
    ) -> None:
        """One line. `look`: `ha`, `style` and `weight` of matplotlib; `halo`: with the card's
        colour around it.
        """
        if self._is_page:
            names = {"ha": "text-anchor", "style": "font-style", "weight": "font-weight"}
            shown = ((name, of) for name, of in look.items() if of and of != "normal")
            look = {names.get(name, "class"): WRITTEN.get(of, of) for name, of in shown}
            look |= {"fill": color} | ({"font-size": f"{size:g}"} if size != TEXT_PX else {})
            self._words.append(element("text", look, {"x": x, "y": y}, words))
            return
        if look.pop("halo", False):
            look["bbox"] = {"fc": CARD, "lw": 0, "pad": 1}
        look |= {"color": color, "size": size, "family": (FONT, "sans-serif")}
        self.canvas.text(x, y, visible(words), transform=self._pixels, **look)

    def name(self, x: float, y: float, words: str, color: str = INK, **look: Any) -> None:
        self.text(x, y, words, color, NAME_PX, weight="bold", **look)

    def line(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        color: str,
        clip: Box | None = None,
        **look: Any,
    ) -> None:
        """A nan interrupts it. `look`: of Line2D."""
        line = Line2D(xs, ys, color=color, transform=self._pixels, **look)
        self.canvas.add_artist(line)
        if clip is not None:
            line.set_clip_box(TransformedBbox(Bbox.from_bounds(*clip), self._pixels))

    def marks(self, xs: Sequence[float], ys: Sequence[float], color: str, **look: Any) -> None:
        self.line(xs, ys, color, ls="none", **{"zorder": 2.5, "ms": 7, "mew": 0, **look})

    def box(self, box: Box, **look: Any) -> None:
        x, y, *size = box
        self.canvas.add_artist(Rectangle((x, y), *size, transform=self._pixels, **look))

    def area(self, corners: Sequence[tuple[float, float]], color: str, **look: Any) -> None:
        self.canvas.add_artist(Polygon(corners, fc=color, lw=0, transform=self._pixels, **look))

    def image(self, shares: Any, box: Box, colours: str) -> None:
        """A pixel for each share from 0 to 1."""
        axes = self.canvas.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.imshow(shares, cmap=colours, vmin=0, vmax=1, interpolation="none", aspect="auto")
        self._images.append((axes, box))

    def title(self, box: Box, words: str) -> None:
        """What is said where the reader points; browsers show it without a script."""
        place = dict(zip(("x", "y", "width", "height"), box, strict=True))
        said = element("title", {}, {}, words)
        self._words.append(element("rect", {"class": "at"}, place).replace("><", f">{said}<"))

    def place(self, left: float, top: float) -> None:
        """On its canvas, which has its size by now."""
        whole, high = self.canvas.get_size_inches() * DPI
        self._inches.clear().scale(1, -1).translate(left, high - top).scale(1 / DPI)
        for axes, (x, y, wide, tall) in self._images:
            bottom = 1 - (top + y + tall) / high
            axes.set_position(((left + x) / whole, bottom, wide / whole, tall / high))

    def svg(self, classes: str, description: str, prefix: str) -> str:
        """For a page, with a name for screen readers. `prefix`: of ids, unique on the page."""
        self.canvas.set_size_inches(self.width / DPI, self.height / DPI)
        self.place(0, 0)
        drawn = StringIO()
        self.canvas.savefig(drawn, format="svg", transparent=True, metadata=DATELESS)
        box = f'viewBox="0 0 {self.width:g} {self.height:g}"'
        said = escape(visible(description))
        inside = compact(drawn.getvalue(), prefix) + "".join(self._words)
        return f'<svg class="pic {classes}" {box} role="img" aria-label="{said}">{inside}</svg>'


def marker(name: str, places: Places) -> str:
    return MARKERS[places.get(name, 0) % len(MARKERS)]


@lru_cache(4096)
def text_width(words: str, size: float = TEXT_PX, weight: str = "normal") -> float:
    font = FontProperties(family=FONT, size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(visible(words), font, ismath=False)[0])


def widest(texts: Iterable[str], size: float = TEXT_PX, weight: str = "normal") -> float:
    return max((text_width(one, size, weight) for one in texts), default=0.0)


class _Wrapper(TextWrapper):
    wordsep_re = re.compile(r"(?<=[:_/,-])|(?<= )(?![~≠])|(?=[@\[])")


def wrapped(words: str, room: float, size: float = NAME_PX, weight: str = "bold") -> list[str]:
    """In lines that fit, broken at the signs of names: `attend`, `@my_attention`; else where they
    must be. Only an absurd name is cut.
    """
    most = max(2, int(room / (size * LETTER_EM[weight])))
    return _Wrapper(most, max_lines=MOST_LINES, placeholder="…").wrap(visible(words))


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Upper ends of boxes along a line, near to where they are wanted, not overlapping.

    If they do not all fit between low and high, they begin at low.
    """
    order, tops = sorted(range(len(wanted)), key=lambda place: wanted[place]), list(wanted)
    for place in reversed(order):  # up from the lower end, then down from the upper one
        tops[place] = high = min(tops[place], high - sizes[place])
    for place in order:
        tops[place] = max(tops[place], low)
        low = tops[place] + sizes[place]
    return tops
