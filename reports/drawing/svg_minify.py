"""Makes matplotlib's SVG small and safe to inline: a page of 500 cases has two dozen drawings."""

import re

# Text, axes and grid are drawn in this colour; it becomes currentColor, the colour of the page's
# text.
INK = "#010203"
FONT_SIZE = 9.5
GRID_OPACITY, GRID_WIDTH = 0.18, 0.6
_TAG = re.compile(r"<(?:path|use|g|text)\s[^>]*>")
_MARKS = re.compile(r'<g([^>]*)>((?:<use [^>]*style="([^"]*)"/>)+)</g>')
_LONG = re.compile(r"\d+\.\d{3,}")
_GRID = f"stroke-opacity: {GRID_OPACITY}; stroke-width: {GRID_WIDTH}"


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
