"""What all drawings consist of: marks, lines and texts as SVG, and where texts find room."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import cos, pi, sin
from typing import Literal

from ...harness.files.printable import visible
from .palette import Places

Width = Literal["wide", "narrow"]
WIDTHS: tuple[Width, ...] = ("wide", "narrow")
BOLD_EM, TEXT_EM = 0.66, 0.58  # width of a letter in the widest of common fonts (DejaVu Sans)
MOST_LINES = 5  # of one name
_BREAKS = re.compile(r"(?<=[:_/,-])|(?<= )(?![~≠])|(?=[@\[])")
CROSS_PX = 5.5
# The outline of a cross.
HOLLOW = (
    (0, -2.2), (4.8, -7), (7, -4.8), (2.2, 0), (7, 4.8), (4.8, 7),
    (0, 2.2), (-4.8, 7), (-7, 4.8), (-2.2, 0), (-7, -4.8), (-4.8, -7),
)  # fmt: skip


def coordinate(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0").replace("-0", "0" if -0.05 < value < 0 else "-0", 1)


def shape(name: str, places: Places) -> int:
    """The number of its marker."""
    return places.get(name, 0) % len(_SHAPES)


def mark(number: int, x: float, y: float, radius: float, classes: str, title: str = "") -> str:
    """A marker about as large as a circle of this radius."""
    inside = f"><title>{safe(title)}</title></" if title else ""
    if number == 0:
        tag, body = "circle", f'cx="{coordinate(x)}" cy="{coordinate(y)}" r="{coordinate(radius)}"'
    else:
        points = [(x + radius * dx, y + radius * dy) for dx, dy in _SHAPES[number]]
        tag, body = "path", f'd="M{"L".join(_point(*point) for point in points)}z"'
    return f'<{tag} class="{classes}" {body}' + (f"{inside}{tag}>" if inside else "/>")


def _around(corners: int, radius: float, turn: float = 0.0) -> tuple[tuple[float, float], ...]:
    """A regular polygon with a corner at the top, turned by a part of a circle."""
    angles = [2 * pi * (corner / corners + turn) for corner in range(corners)]
    return tuple((radius * sin(angle), -radius * cos(angle)) for angle in angles)


_PLUS = tuple(
    (sx * a, sy * b)
    for sx, sy, swapped in ((1, -1, False), (1, 1, True), (-1, 1, False), (-1, -1, True))
    for a, b in (((0.4, 1.2), (0.4, 0.4)) if not swapped else ((0.4, 0.4), (0.4, 1.2)))
)
_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),  # a circle
    _around(4, 1.26, 1 / 8),
    _around(3, 1.36),
    _around(4, 1.32),
    _around(3, 1.36, 1 / 2),
    _PLUS,
    _around(5, 1.2),
)


def _point(x: float, y: float) -> str:
    return f"{coordinate(x)} {coordinate(y)}"


def path(points: Sequence[tuple[float, float]], classes: str) -> str:
    return f'<path class="{classes}" d="M{"L".join(_point(*point) for point in points)}"/>'


def area(points: Sequence[tuple[float, float]], classes: str) -> str:
    return path(points, classes).replace('"/>', 'z"/>')


def line(x: float, y: float, to_x: float, to_y: float, classes: str) -> str:
    way = f"H{coordinate(to_x)}" if y == to_y else f"V{coordinate(to_y)}" if x == to_x else ""
    way = way or f"L{_point(to_x, to_y)}"
    return f'<path class="{classes}" d="M{_point(x, y)}{way}"/>'


def rect(x: float, y: float, width: float, height: float, classes: str) -> str:
    size = f'width="{coordinate(width)}" height="{coordinate(height)}"'
    return f'<rect class="{classes}" x="{coordinate(x)}" y="{coordinate(y)}" {size}/>'


def text(
    x: float, y: float, content: str, classes: str, anchor: str = "start", remark: str = ""
) -> str:
    """One line; `anchor`: start, middle or end. `remark`: follows in small letters."""
    at = f'x="{coordinate(x)}" y="{coordinate(y)}"'
    aligned = "" if anchor == "start" else f' text-anchor="{anchor}"'
    small = f'<tspan class="src" dx="7">{safe(remark)}</tspan>' if remark else ""
    return f'<text class="{classes}" {at}{aligned}>{safe(content)}{small}</text>'


def safe(content: str) -> str:
    return escape(visible(content))


def wrapped(name: str, room: float, size: float, em: float = BOLD_EM) -> list[str]:
    """The name in lines that fit, broken at its own signs: `attend`, `@my_attention`.

    A part without such a sign is broken where it must be. Only an absurd name is cut.
    """
    most = max(2, int(room / (size * em)))
    lines = [""]
    for part in _BREAKS.split(visible(name)):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > most:
            lines.append("")
        lines[-1] += part
        while len(lines[-1].rstrip()) > most:
            lines[-1:] = [lines[-1][:most], lines[-1][most:]]
    shown = [one.strip() for one in lines if one.strip()] or [""]
    return shown if len(shown) <= MOST_LINES else [*shown[: MOST_LINES - 1], "…"]


def name_room(names: Iterable[str], size: float, most: float, em: float = BOLD_EM) -> float:
    """The width that these names need, the longest of them in lines of at most `most`."""
    parts = (part for name in names for part in wrapped(name, most, size, em))
    return max((text_width(part, size, em) for part in parts), default=0.0)


def text_width(content: str, size: float, em: float = TEXT_EM) -> float:
    return len(visible(content)) * size * em


def cross(x: float, y: float, number: str, *, hollow: bool) -> str:
    """Out of memory; hollow: predicted."""
    if not hollow:
        a, b = coordinate(x - CROSS_PX), coordinate(y - CROSS_PX)
        arm = coordinate(2 * CROSS_PX)
        way = f"M{a} {b}l{arm} {arm}M{a} {coordinate(y + CROSS_PX)}l{arm} -{arm}"
        return f'<path class="cross s-{number}" d="{way}"/>'
    return area([(x + dx, y + dy) for dx, dy in HOLLOW], f"hollow s-{number}")


@dataclass(frozen=True, slots=True)
class Value:
    """What a picture says at one x: a line of text, its tone, and the case's number on the page."""

    words: str
    y: float
    tone: str = "x"
    case: int | None = None


def at_x(
    box: tuple[float, float, float, float], x: float, head: str, values: Sequence[Value]
) -> str:
    """The strip around x that shows all values there when it is pointed at or has the focus.

    `box`: left, top, width, height. Browsers show its title without a script.
    """
    title = "\n".join([safe(head), *(safe(one.words) for one in values)])
    tones = " ".join(one.tone for one in values)
    cases = " ".join("-" if one.case is None else str(one.case) for one in values)
    ys = " ".join(coordinate(one.y) for one in values)
    known = f' data-cases="{cases}" data-ys="{ys}"' if cases.strip("- ") else ""
    return rect(*box, "at").removesuffix("/>") + (
        f' data-x="{coordinate(x)}" data-tones="{tones}"{known}><title>{title}</title></rect>'
    )


def strips(xs: Sequence[float], left: float, right: float) -> list[tuple[float, float]]:
    """For each place in order the ends of what is nearest to it."""
    middles = [(one + other) / 2 for one, other in pairwise(xs)]
    return list(pairwise([left, *middles, right]))


def svg(width: float, height: float, classes: str, description: str, body: str) -> str:
    """The drawing with a name for screen readers; the page's style sheet gives its size."""
    box = f'viewBox="0 0 {coordinate(width)} {coordinate(height)}"'
    return (
        f'<svg class="pic {classes}" {box} role="img" aria-label="{safe(description)}">{body}</svg>'
    )


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
