"""A drawing in pixels from its upper left corner, made of matplotlib's artists.

It is a whole SVG of a page, or a part of a file. Texts are measured in matplotlib's own DejaVu
Sans, the widest of common fonts, and stay texts.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from io import StringIO
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D

from ...harness.files.printable import visible
from .palette import COLOURS
from .svg import compact

Width = Literal["wide", "narrow"]
INK, MUTE, CARD = COLOURS["p-ink"], COLOURS["p-mute"], COLOURS["p-card"]
MARKERS = "os^DvPp"  # of the first seven places
DPI = 72  # so that a point of matplotlib is a pixel
FONT, BOLD = "DejaVu Sans", "bold"
FAMILY = (FONT, "sans-serif")
TEXT_PX, NAME_PX, LINE_PX = 13.0, 14.0, 15.0
MOST_LINES, MOST_LETTERS = 5, 400  # of one name
DATELESS = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_BREAKS = re.compile(r"(?<=[:_/,-])|(?<= )(?![~≠])|(?=[@\[])")

Box = tuple[float, float, float, float]
Value = tuple[float, str, str, str]  # y in pixels, what is said there, its tone, its case's number


class Sheet:
    """`canvas`: of a file that it is a part of; else it has its own. Its height is set when all is
    drawn.
    """

    def __init__(self, width: float, canvas: Canvas | None = None) -> None:
        self.width, self.height = width, 0.0
        self.canvas = canvas or Canvas(dpi=DPI)
        self.strips: list[str] = []  # as SVG
        self._pixels = Affine2D()
        self._plots: list[tuple[Axes, float, float, float, float]] = []

    def text(
        self, x: float, y: float, words: str, color: str = MUTE, size: float = TEXT_PX, **look: Any
    ) -> None:
        """One line. `look`: `ha` and others of matplotlib, `bold`, `halo` to cover what is behind."""
        if not words:
            return
        if look.pop("halo", False):
            look["bbox"] = {"facecolor": CARD, "linewidth": 0, "pad": 1}
        look["weight"] = BOLD if look.pop("bold", False) else "normal"
        words = visible(words)
        self.canvas.text(
            x, y, words, color=color, size=size, family=FAMILY, transform=self._pixels, **look
        )

    def line(self, xs: Sequence[float], ys: Sequence[float], color: str, **look: Any) -> None:
        """`look`: as of matplotlib's Line2D."""
        self.canvas.add_artist(Line2D(xs, ys, color=color, transform=self._pixels, **look))

    def marks(self, xs: Sequence[float], ys: Sequence[float], color: str, **look: Any) -> None:
        self.line(xs, ys, color, **{"ls": "none", "zorder": 2.5, **look})

    def box(self, x: float, y: float, width: float, height: float, fill: str, **look: Any) -> None:
        look = {"fc": fill, "ec": "none", "transform": self._pixels, **look}
        self.canvas.add_artist(Rectangle((x, y), width, height, **look))

    def plot(self, left: float, top: float, width: float, height: float, **limits: Any) -> Axes:
        """Bare axes for what is drawn over values."""
        axes = self.canvas.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(**limits)
        self._plots.append((axes, left, top, width, height))
        return axes

    def strip(self, box: Box, x: float, head: str, values: Sequence[Value]) -> None:
        """Around x, with all values there when it is pointed at or has the focus."""
        tones, cases = (" ".join(value[of] for value in values) for of in (2, 3))
        about = f' class="at" data-x="{x:.1f}" data-tones="{tones}"'
        if cases.strip("- "):
            about += f' data-cases="{cases}" data-ys="{" ".join(f"{y:.1f}" for y, *_ in values)}"'
        self.title(box, "\n".join([head, *(words for _, words, *_ in values)]), about)

    def title(self, box: Box, words: str, about: str = ' class="tt"') -> None:
        """What is said where the reader points; browsers show it without a script."""
        pairs = zip(("x", "y", "width", "height"), box, strict=True)
        place = " ".join(f'{name}="{at:.1f}"' for name, at in pairs)
        self.strips.append(f"<rect{about} {place}><title>{safe(words)}</title></rect>")

    def place(self, left: float, top: float) -> None:
        """On its canvas, which has its size by now."""
        whole, high = self.canvas.bbox.width, self.canvas.bbox.height
        self._pixels.set(Affine2D().scale(1, -1).translate(left, high - top))
        for axes, x, y, wide, tall in self._plots:
            box = ((left + x) / whole, 1 - (top + y + tall) / high, wide / whole, tall / high)
            axes.set_position(box)

    def svg(self, classes: str, description: str, prefix: str) -> str:
        """For a page, with a name for screen readers. `prefix`: of ids, unique on the page."""
        self.canvas.set_size_inches(self.width / DPI, self.height / DPI)
        self.place(0, 0)
        drawn = StringIO()
        self.canvas.savefig(drawn, format="svg", transparent=True, metadata=DATELESS)
        box = f'viewBox="0 0 {self.width:g} {self.height:g}"'
        return (
            f'<svg class="pic {classes}" {box} role="img" aria-label="{safe(description)}">'
            f"{compact(drawn.getvalue(), prefix)}{''.join(self.strips)}</svg>"
        )


def marker(place: int) -> str:
    return MARKERS[place % len(MARKERS)]


def safe(content: str) -> str:
    return escape(visible(content))


@lru_cache(4096)
def text_width(words: str, size: float = TEXT_PX, *, bold: bool = False) -> float:
    font = FontProperties(family=FONT, size=size, weight=BOLD if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(visible(words), font, ismath=False)[0])


def widest(texts: Sequence[str], size: float = TEXT_PX, *, bold: bool = False) -> float:
    return max((text_width(one, size, bold=bold) for one in texts), default=0.0)


def wrapped(name: str, room: float, size: float = TEXT_PX, *, bold: bool = False) -> list[str]:
    """The name in lines that fit, broken at its own signs: `attend`, `@my_attention`.

    A part without such a sign is broken where it must be. Only an absurd name is cut.
    """
    lines = [""]
    for part in _BREAKS.split(visible(name)[:MOST_LETTERS]):
        if lines[-1] and text_width(lines[-1] + part.rstrip(), size, bold=bold) > room:
            lines.append("")
        lines[-1] += part
        while (wide := text_width(lines[-1].rstrip(), size, bold=bold)) > room > 0:
            most = max(2, int(0.9 * len(lines[-1]) * room / wide))
            if most >= len(lines[-1]):
                break
            lines[-1:] = [lines[-1][:most], lines[-1][most:]]
    shown = [one.strip() for one in lines if one.strip()] or [""]
    return shown if len(shown) <= MOST_LINES else [*shown[: MOST_LINES - 1], "…"]


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Centres of boxes along a line, near to where they are wanted, not overlapping.

    If they do not all fit between low and high, they begin at low.
    """
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    tops = {place: wanted[place] - sizes[place] / 2 for place in order}
    edge = high
    for place in reversed(order):  # up from the lower end, then down from the upper one
        tops[place] = min(tops[place], edge - sizes[place])
        edge = tops[place]
    edge = low
    for place in order:
        tops[place] = max(tops[place], edge)
        edge = tops[place] + sizes[place]
    return [tops[place] + sizes[place] / 2 for place in range(len(wanted))]
