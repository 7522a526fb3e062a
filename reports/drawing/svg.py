"""matplotlib's SVG made small: no metadata, groups, styles or ids that a page does not need.

Colours become the page's variables, which differ in light and dark.
"""

import re
from collections.abc import Mapping
from html import escape
from xml.etree import ElementTree

from ...harness.files.printable import visible
from .palette import COLOURS

SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
LOOK = re.compile(r"(fill|stroke|stroke-width|stroke-dasharray|[a-z-]*opacity): ([^;]+)")
PLACE = ("x", "y", "width", "height", "transform")
PLAIN = (("stroke-width", "1"), ("opacity", "1"))
VARIABLES = {colour: f"var(--{name})" for name, colour in COLOURS.items()}


def element(
    tag: str, look: Mapping[str, str], place: Mapping[str, float | str], words: str = ""
) -> str:
    """With its colours as variables, and its place to a tenth of a pixel."""
    attributes = [*look.items(), *((name, _rounded(str(value))) for name, value in place.items())]
    pairs = ((name, VARIABLES.get(of, of)) for name, of in attributes if (name, of) not in PLAIN)
    opened = tag + "".join(f' {name}="{of}"' for name, of in pairs)
    said = escape(visible(words, lines=True))
    return f"<{opened}>{said}</{tag}>" if said else f"<{opened}/>"


def compact(drawn: str, prefix: str) -> str:
    """What is inside the drawing. `prefix`: of its ids."""
    root = ElementTree.fromstring(drawn)  # noqa: S314 - our own
    named = [one.attrib["id"] for one in root.iter() if "id" in one.attrib and one.tag != f"{SVG}g"]
    ids = {name: f"{prefix}{place}" for place, name in enumerate(named)}
    return "".join(_written(one, ids) for one in root)


def _written(one: ElementTree.Element, ids: Mapping[str, str]) -> str:
    tag, id_ = one.tag.removeprefix(SVG), ids.get(one.get("id", ""))
    if tag in ("metadata", "style"):
        return ""
    inside = "".join(_written(child, ids) for child in one)
    if tag == "g":
        return inside
    if tag in ("defs", "clipPath"):
        named = f' id="{id_}"' if id_ else ""
        return f"<{tag}{named}>{inside}</{tag}>" if inside else ""
    if tag == "path" and one.get("style") == "fill: none":  # behind all
        return ""
    look = {} if tag == "path" and id_ else dict(LOOK.findall(one.get("style", "")))
    place = {name: one.attrib[name] for name in PLACE if name in one.attrib}
    if way := one.get("d"):
        place["d"] = re.sub(r" *([A-Za-z]) *", r"\1", _rounded(way))
    if tag == "path" and id_:
        look["id"] = id_
    if link := one.get(LINK):
        look["href"] = f"#{ids[link[1:]]}" if link[1:] in ids else link
    if clip := one.get("clip-path"):
        look["clip-path"] = f"url(#{ids[clip[5:-1]]})"
    return element(tag, look, place)


def _rounded(text: str) -> str:
    """Numbers to a tenth of a pixel."""
    text = re.sub(r"\d+\.\d+(e-?\d+)?", lambda at: f"{float(at[0]):.1f}".removesuffix(".0"), text)
    return " ".join(text.split())
