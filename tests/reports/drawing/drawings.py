"""Figures to draw, and what their drawings hold: texts with their boxes, titles, marks."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple
from xml.etree import ElementTree

from attnbench.reports.drawing.picture import drawing, places_in, svgs
from attnbench.reports.elements import Drawable, Figure, Panel, Scale, Series, Table
from attnbench.reports.formatting import bytes_text

Svg = ElementTree.Element
MIB = 1 << 20
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
WIDTHS = ("wide", "narrow")
EMPTY = Table(title="", columns=(), rows=())


def parts(picture: Drawable, width: Any = "wide", scale: Scale | None = None) -> list[Svg]:
    """Each part of a picture whose lines are all backends."""
    if isinstance(picture, Figure):
        names = [one.backend for panel in picture.panels for one in panel.series]
        if scale:
            panels = (replace(one, x_scale=scale, y_scale=scale) for one in picture.panels)
            picture = replace(picture, panels=tuple(panels))
    else:
        names = ["naive", "fused", "sdpa"]
    with drawing():
        found = svgs(picture, places_in(picture, names), "p", width)
    return list(map(ElementTree.fromstring, found))


def figure_of(*panels: Panel, **fields: Any) -> Figure:
    return Figure(title="", caption="", panels=panels, table=EMPTY, **fields)


def line(name: str, *values: float | None, **fields: Any) -> Series:
    xs = tuple(float(128 << place) for place in range(len(values)))
    return Series(**{"backend": name, "kind": "measured", "x": xs, "y": values} | fields)


def times(*series: Series, **fields: Any) -> Panel:
    labels = {"x_label": "sequence length N (1k = 1024)", "y_label": "latency", "unit": "ms"}
    return Panel(**labels | {"series": series} | fields)


def need(
    backend: str, quadratic: float, linear: float = 10240, budget: int = 512 * MIB
) -> tuple[Series, ...]:
    """What was measured, its continuation by formula, and crosses where it does not fit."""
    needs = {n: quadratic * n * n + linear * n for n in LENGTHS}
    fits = {n: need for n, need in needs.items() if need <= budget}
    beyond = {n: need for n, need in needs.items() if n not in fits}
    stop = max((n for n in range(256, 8192) if quadratic * n * n + linear * n <= budget), default=0)
    last, ends = list(fits.items())[-1:], f"up to {stop}" if beyond else "65 MiB"
    found = [
        Series(
            backend=backend,
            kind="measured",
            x=tuple(fits),
            y=tuple(fits.values()),
            ending=ends,
            stop=stop if beyond else None,
        )
    ]
    if beyond:
        x, y = zip(*last, *beyond.items(), strict=True)
        found.append(Series(backend=backend, kind="formula", x=x, y=y))
    for kind, why in (("failed", "out of memory"), ("untried", "not tried")):
        here = {n: y for n, y in beyond.items() if (y > 4 * budget) == (kind == "untried")}
        if here:
            x, y = tuple(here), tuple(here.values())
            found.append(Series(backend=backend, kind=kind, x=x, y=y, why=why))  # type: ignore[arg-type]
    return tuple(found)


def wall(*panels: Sequence[Sequence[Series]], budget: int = 512 * MIB) -> Figure:
    return figure_of(
        *(
            Panel(
                title=f"{place} heads",
                x_label="sequence length N",
                y_label="memory needed",
                unit="bytes",
                series=tuple(series for one in lines for series in one),
                line=(budget, bytes_text(budget)),
            )
            for place, lines in enumerate(panels, 1)
        ),
    )


QUICKSTART = wall(
    [need("naive", 8), need("fused", 64), need("sdpa", 0)],
    [need("naive", 8), need("fused", 8), need("sdpa", 0)],
)


class Words(NamedTuple):
    content: str
    left: float
    top: float
    right: float
    bottom: float


def texts(svg: Svg) -> list[Words]:
    """Each text with its box, as matplotlib measures it."""
    from attnbench.reports.drawing.sheet import text_width

    found = []
    for one in svg.iter("text"):
        size, content = float(one.get("font-size", "13")), one.text or ""
        wide = text_width(content, size, "bold" if one.get("font-weight") else "normal")
        anchor = {"middle": 0.5, "end": 1.0}.get(one.get("text-anchor", ""), 0.0)
        x, y = float(one.get("x", "")) - anchor * wide, float(one.get("y", ""))
        found.append(Words(content, x, y - 0.75 * size, x + wide, y + 0.2 * size))
    return found


def check_texts(svg: Svg) -> None:
    """None covers another, and all lie within the view box."""
    every = texts(svg)
    for one, other in combinations(every, 2):
        beside = one.left >= other.right or other.left >= one.right
        assert beside or one.top >= other.bottom or other.top >= one.bottom, (one, other)
    _, _, width, height = map(float, svg.get("viewBox", "").split())
    for words in every:
        assert words.left >= -0.1, words
        assert words.right <= width + 0.1, words
        assert words.bottom <= height, words


def contents(svg: Svg) -> list[str]:
    return [(one.text or "").replace("\u202f", " ") for one in svg.iter("text")]


def said(svg: Svg) -> str:
    return "\n".join(one.text or "" for one in svg.iter("title"))


def names(svg: Svg) -> str:
    return "".join(one.text or "" for one in svg.iter("text") if one.get("font-weight"))


def marks(svg: Svg, **look: str) -> list[tuple[float, float]]:
    """Where marks of this look are; `_` stands for `-`."""
    wanted = {name.replace("_", "-"): value for name, value in look.items()}
    return [
        (float(one.get("x", "")), float(one.get("y", "")))
        for one in svg.iter("use")
        if all(one.get(name) == value for name, value in wanted.items())
    ]


def ways(svg: Svg, **look: str) -> list[list[tuple[float, float]]]:
    """The corners of paths of this look."""
    wanted = {name.replace("_", "-"): value for name, value in look.items()}
    return [
        [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", one.get("d", ""))]
        for one in svg.iter("path")
        if all(one.get(name) == value for name, value in wanted.items())
    ]
