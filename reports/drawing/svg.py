"""matplotlib's SVG made small: no metadata, groups, styles or ids that a page does not need.

Colours become the page's variables, which differ in light and dark.
"""

import re
from html import escape
from xml.etree import ElementTree

from .palette import COLOURS

SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
KEPT = ("fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity")
KEPT += ("stroke-opacity", "text-anchor")
PLAIN = {("stroke-width", "1"), ("font-size", "13"), ("text-anchor", "start")}
VARIABLES = {colour: f"var(--{name})" for name, colour in COLOURS.items()}


def compact(drawn: str, prefix: str) -> str:
    """What is inside the drawing. `prefix`: of its ids."""
    root = ElementTree.fromstring(drawn)  # noqa: S314 - our own, all foreign text escaped
    every = [one.get("id", "") for one in root.iter() if not one.tag.endswith("}g")]
    ids = {name: f"{prefix}{place}" for place, name in enumerate(filter(None, every))}
    return "".join(_written(one, ids) for one in root)


def _written(one: ElementTree.Element, ids: dict[str, str], shared: str = "") -> str:
    """`shared`: what the group says."""
    tag = one.tag.removeprefix(SVG)
    if tag in ("metadata", "style"):
        return ""
    look = _look(one)
    if tag == "g":
        uses = {_look(child) for child in one} if _is_all(one, "use") else set()
        if len(uses) == 1:
            return f"<g{uses.pop()}>{''.join(_element(use, 'use', '', ids) for use in one)}</g>"
        return "".join(_written(child, ids) for child in one)
    if tag == "defs":
        inside = "".join(
            _written(child, ids) if child.tag != f"{SVG}path" else _element(child, "path", "", ids)
            for child in one
        )
        return f"<defs>{inside}</defs>" if inside else ""
    return _element(one, tag, look, ids)


def _is_all(one: ElementTree.Element, tag: str) -> bool:
    return len(one) > 1 and all(child.tag == SVG + tag for child in one)


def _element(one: ElementTree.Element, tag: str, look: str, ids: dict[str, str]) -> str:
    attributes = dict(one.attrib) | {"href": one.get(LINK, "")}
    kept = ("x", "y", "width", "height", "transform") if tag != "text" else ("x", "y")
    parts = [f' id="{ids[one.attrib["id"]]}"'] if one.get("id") in ids and tag != "image" else []
    if "d" in attributes:
        way = re.sub(r"\s*([A-Za-z])\s*", r"\1", _rounded(attributes["d"]))
        parts.append(f' d="{way}"')
    parts += [f' {name}="{_rounded(attributes[name])}"' for name in kept if name in attributes]
    if href := attributes["href"]:
        parts.append(f' href="{"#" + ids[href[1:]] if href[1:] in ids else href}"')
    if (clip := attributes.get("clip-path", "")[5:-1]) in ids:
        parts.append(f' clip-path="url(#{ids[clip]})"')
    inside = "".join(_written(child, ids) for child in one) + escape((one.text or "").strip())
    opened = f"<{tag}{look}{''.join(parts)}"
    return f"{opened}>{inside}</{tag}>" if inside else f"{opened}/>"


def _rounded(text: str) -> str:
    """Numbers to a tenth of a pixel."""
    return re.sub(r"-?\d+\.\d+(e-?\d+)?", lambda at: f"{float(at[0]):.1f}".removesuffix(".0"), text)


def _look(one: ElementTree.Element) -> str:
    """Its style as attributes, without what is so anyway."""
    style = one.get("style", "")
    found = dict(part.split(": ", 1) for part in style.split("; ") if ": " in part)
    look = {name: found[name] for name in KEPT if name in found}
    if one.tag == f"{SVG}text":
        size = re.search(r"([\d.]+)px", style)
        look |= {"font-size": size[1].removesuffix(".0")} if size else {}
        look |= {"font-weight": "600"} if re.search(r"\b(600|bold)\b", style) else {}
        look |= {"font-style": "italic"} if "italic" in style else {}
    values = {name: VARIABLES.get(value, value) for name, value in look.items()}
    return "".join(
        f' {name}="{value}"' for name, value in values.items() if (name, value) not in PLAIN
    )
