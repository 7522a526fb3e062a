"""matplotlib's SVG made small: no metadata, groups, styles or ids that a page does not need.

Colours become the page's variables, which differ in light and dark.
"""

import re
from html import escape
from xml.etree import ElementTree

from .palette import COLOURS

SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
LOOK = re.compile(
    r"(fill|stroke|stroke-width|stroke-dasharray|[a-z-]*opacity|text-anchor): ([^;]+)"
)
PLACE = ("x", "y", "width", "height", "transform")
PLAIN = (' stroke-width="1"', ' font-size="13"', ' text-anchor="start"')
VARIABLES = {colour: f"var(--{name})" for name, colour in COLOURS.items()}


def compact(drawn: str, prefix: str) -> str:
    """What is inside the drawing. `prefix`: of its ids."""
    root = ElementTree.fromstring(drawn)  # noqa: S314 - our own, all foreign text escaped
    named = [one.attrib["id"] for one in root.iter() if "id" in one.attrib and one.tag != f"{SVG}g"]
    ids = {name: f"{prefix}{place}" for place, name in enumerate(named)}
    return "".join(_written(one, ids) for one in root)


def _written(one: ElementTree.Element, ids: dict[str, str]) -> str:
    tag = one.tag.removeprefix(SVG)
    inside = "".join(_written(child, ids) for child in one) + escape((one.text or "").strip())
    if tag in ("metadata", "style"):
        return ""
    if tag == "g" or (tag == "defs" and not inside):
        return inside
    parts = [tag, _look(one) if one.get("id") not in ids or tag == "image" else ""]
    if tag in ("path", "clipPath") and one.get("id") in ids:
        parts.append(f' id="{ids[one.attrib["id"]]}"')
    if way := re.sub(r" *([A-Za-z]) *", r"\1", _rounded(one.get("d", ""))):
        parts.append(f' d="{way}"')
    places = PLACE[:2] if tag == "text" else PLACE
    parts += [f' {name}="{_rounded(one.attrib[name])}"' for name in places if name in one.attrib]
    if link := one.get(LINK):
        parts.append(f' href="{"#" + ids[link[1:]] if link[1:] in ids else link}"')
    if clip := one.get("clip-path"):
        parts.append(f' clip-path="url(#{ids[clip[5:-1]]})"')
    opened = "".join(parts)
    return f"<{opened}>{inside}</{tag}>" if inside else f"<{opened}/>"


def _rounded(text: str) -> str:
    """Numbers to a tenth of a pixel."""
    text = re.sub(r"-?\d+\.\d+(e-?\d+)?", lambda at: f"{float(at[0]):.1f}".removesuffix(".0"), text)
    return " ".join(text.split())


def _look(one: ElementTree.Element) -> str:
    """Its style as attributes, without what is so anyway."""
    style = one.get("style", "")
    found = [f' {name}="{VARIABLES.get(value, value)}"' for name, value in LOOK.findall(style)]
    if one.tag == f"{SVG}text":
        size = re.search(r"([\d.]+)px", style)
        found.append(f' font-size="{_rounded(size[1])}"' if size else "")
        found.append(' font-weight="600"' if re.search(r"\b(700|bold)\b", style) else "")
        found.append(' font-style="italic"' if "italic" in style else "")
    return "".join(part for part in found if part not in PLAIN)
