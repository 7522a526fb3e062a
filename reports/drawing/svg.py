"""matplotlib's SVG made small: no groups, styles or digits that a page does not need.

Colours become the page's variables, which differ in light and dark.
"""

import re
from collections.abc import Iterable, Mapping
from html import escape

from ...harness.files.printable import visible
from .palette import COLOURS

VARIABLES = {colour: f"var(--{name})" for name, colour in COLOURS.items()}
LOOK = re.compile(r"(fill|stroke|stroke-width|stroke-dasharray|[a-z-]*opacity): ([^;]+)")
PLAIN = (("stroke-width", "1"), ("opacity", "1"))


def element(tag: str, look: Mapping[str, str], place: Mapping[str, float], words: str = "") -> str:
    """With its colours as variables, and its place to a tenth of a pixel."""
    numbers = (f' {name}="{_rounded(f"{at:.3f}")}"' for name, at in place.items())
    said = escape(visible(words, lines=True))
    return f"<{tag}{_attributes(look.items())}{''.join(numbers)}>{said}</{tag}>"


def compact(drawn: str, prefix: str) -> str:
    """What is inside the drawing. `prefix`: of its ids."""
    ids: dict[str, str] = {}
    inside = drawn[drawn.index('<g id="figure_1">') : drawn.rindex("</svg>")]
    inside = re.sub(r"</?g\b[^>]*>|xlink:(?=href)", "", inside)
    inside = re.sub(
        r'(?<=\bid=")[^"]+|(?<=#)[a-z]\w{10}(?=[")])',
        lambda at: ids.setdefault(at[0], f"{prefix}{len(ids)}"),
        inside,
    )
    inside = re.sub(r' style="([^"]*)"', lambda at: _attributes(LOOK.findall(at[1])), inside)
    inside = re.sub(r'(?<= (?:d|x|y)=")[^"]*', lambda at: _rounded(at[0]), inside)
    return re.sub(r"(?<=>)\s+", "", inside)


def _attributes(look: Iterable[tuple[str, str]]) -> str:
    """Without what is so anyway."""
    pairs = ((name, VARIABLES.get(of, of)) for name, of in look if (name, of) not in PLAIN)
    return "".join(f' {name}="{of}"' for name, of in pairs)


def _rounded(place: str) -> str:
    """To a tenth of a pixel, without spaces around letters."""
    near = re.sub(r"\d+\.\d+", lambda at: f"{float(at[0]):.1f}".removesuffix(".0"), place)
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", near).strip()
