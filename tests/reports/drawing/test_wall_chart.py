"""reports/drawing/chart.py with a limit of memory: scales, crosses, ends, texts that are apart."""

import re
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from attnbench.reports.drawing.chart import draw
from attnbench.reports.drawing.marks import BOLD_EM, TEXT_EM
from attnbench.reports.drawing.palette import places_of
from attnbench.reports.drawing.picture import on_scale
from attnbench.reports.elements import Figure, Panel, Scale, Series, Table
from attnbench.reports.formatting import bytes_text

MIB = 1 << 20
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
VERSIONS: tuple[tuple[str, Scale], ...] = (
    ("wide", "log"),
    ("wide", "linear"),
    ("narrow", "log"),
    ("narrow", "linear"),
)


class Words(NamedTuple):
    content: str
    left: float
    top: float
    right: float
    bottom: float


def line(
    backend: str, quadratic: float, linear: float = 10240, budget: int = 512 * MIB
) -> tuple[Series, ...]:
    """What was measured, its continuation by formula, and crosses where it does not fit."""
    needs = {n: quadratic * n * n + linear * n for n in LENGTHS}
    fits = {n: need for n, need in needs.items() if need <= budget}
    stop = max((n for n in range(256, 8192) if quadratic * n * n + linear * n <= budget), default=0)
    found = [
        Series(
            backend=backend,
            kind="measured",
            x=tuple(fits),
            y=tuple(fits.values()),
            cases=tuple(map(str, fits)),
            ending=f"up to {stop}" if len(fits) < len(needs) else "65 MiB",
            stop=stop if len(fits) < len(needs) else None,
        )
    ]
    beyond = {n: need for n, need in needs.items() if n not in fits}
    if beyond:
        last = list(fits.items())[-1:]
        x, y = zip(*last, *beyond.items(), strict=True)
        found.append(Series(backend=backend, kind="formula", x=x, y=y))
    for kind, why in (("failed", "out of memory"), ("untried", "not tried")):
        here = {n: y for n, y in beyond.items() if (y > 4 * budget) == (kind == "untried")}
        if here:
            x, y = tuple(here), tuple(here.values())
            crosses = Series(backend=backend, kind=kind, x=x, y=y, cases=x, why=why)  # type: ignore[arg-type]
            found.append(crosses)
    return tuple(found)


def chart(*panels: Sequence[Sequence[Series]], budget: int | None = 512 * MIB) -> Figure:
    return Figure(
        title="",
        caption="",
        panels=tuple(
            Panel(
                title=f"{place} heads",
                x_label="sequence length N",
                y_label="memory needed",
                unit="bytes",
                series=tuple(series for one in lines for series in one),
                line=None if budget is None else (budget, bytes_text(budget)),
            )
            for place, lines in enumerate(panels, 1)
        ),
        table=Table(title="", columns=(), rows=()),
        both_scales=True,
    )


QUICKSTART = chart(
    [line("naive", 8), line("fused", 64), line("sdpa", 0)],
    [line("naive", 8), line("fused", 8), line("sdpa", 0)],
)


def svgs(of: Figure, version: str = "wide", scale: Scale = "log") -> list[ElementTree.Element]:
    names = [one.backend for panel in of.panels for one in panel.series]
    drawings = draw(on_scale(of, scale), places_of(names), version, {})  # type: ignore[arg-type]
    return list(map(ElementTree.fromstring, drawings))


def texts(drawing: ElementTree.Element) -> list[Words]:
    """Each text with the box that it fills at most."""
    found = []
    for one in drawing.iter("text"):
        classes = one.get("class", "").split()
        size = 14 if "narrow" in drawing.get("class", "") or {"lb", "pt"} & set(classes) else 13
        wide = len(one.text or "") * size * (BOLD_EM if {"lb", "pt"} & set(classes) else TEXT_EM)
        x, y = float(one.get("x", "")), float(one.get("y", ""))
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[
            one.get("text-anchor", "start")
        ]
        found.append(Words(one.text or "", left, y - 0.75 * size, left + wide, y + 0.2 * size))
    return found


def overlapping(words: Sequence[Words]) -> list[tuple[str, str]]:
    return [
        (one.content, other.content)
        for one, other in combinations(words, 2)
        if one.left < other.right
        and other.left < one.right
        and one.top < other.bottom
        and other.top < one.bottom
    ]


def contents(drawing: ElementTree.Element) -> list[str]:
    return [(one.text or "").replace("\u202f", " ") for one in drawing.iter("text")]


def classed(drawing: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [one for one in drawing.iter() if name in one.get("class", "").split()]


def plotted(drawing: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    """Without those of the key, which lie in groups of their own."""
    return [one for one in drawing if name in one.get("class", "").split()]


def ys(element: ElementTree.Element) -> list[float]:
    pairs = re.findall(r"(-?[\d.]+) (-?[\d.]+)", element.get("d", ""))
    return [float(y) for _, y in pairs]


def check_texts(drawing: ElementTree.Element) -> None:
    """None covers another, and all lie within the view box."""
    assert overlapping(texts(drawing)) == []
    _, _, width, height = map(float, drawing.get("viewBox", "").split())
    for words in texts(drawing):
        assert words.left >= 0, words
        assert words.right <= width + 2, words
        assert words.bottom <= height, words


@pytest.mark.parametrize(("version", "scale"), VERSIONS)
def test_no_text_covers_another_with_ten_backends(version: str, scale: Scale) -> None:
    lines = [line(f"backend:{place}", 0, 10240 + 200 * place) for place in range(9)]
    (drawing,) = svgs(chart([*lines, line("fused", 64)]), version, scale)
    check_texts(drawing)
    assert {f"backend:{place}" for place in range(9)} <= set(contents(drawing))


@pytest.mark.parametrize(("version", "scale"), VERSIONS)
def test_everything_lies_within_the_view_box(version: str, scale: Scale) -> None:
    for drawing in svgs(QUICKSTART, version, scale):
        check_texts(drawing)
        _, _, width, height = map(float, drawing.get("viewBox", "").split())
        for one in (*plotted(drawing, "hollow"), *plotted(drawing, "ln")):
            assert min(ys(one)) > 0
        for x, y in (found for one in plotted(drawing, "cross") for found in starts(one)):
            assert 0 < x < width - 11
            assert 0 < y < height - 11


def starts(cross: ElementTree.Element) -> list[tuple[float, float]]:
    """Where the two strokes of a cross begin."""
    pairs = re.findall(r"M(-?[\d.]+) (-?[\d.]+)", cross.get("d", ""))
    return [(float(x), float(y)) for x, y in pairs]


def test_crosses_lie_beyond_the_budget_line_and_one_panel_says_what_they_mean() -> None:
    first, second = svgs(QUICKSTART)
    budget = ys(classed(first, "bud")[0])[0]
    assert (len(plotted(first, "hollow")), len(plotted(first, "cross"))) == (1, 2)
    assert (len(plotted(second, "hollow")), len(plotted(second, "cross"))) == (0, 2)
    assert all(max(ys(one)) < budget for one in plotted(first, "hollow"))
    for one in plotted(first, "cross"):
        assert starts(one)[0][1] + 5.5 < budget
    assert {"out of memory", "not tried", "formula"} <= set(contents(first))
    assert not {"out of memory", "not tried", "formula"} & set(contents(second))


def test_a_line_ends_where_it_leaves_linear_axes_and_a_tip_shows_that_it_goes_on() -> None:
    first, _ = svgs(QUICKSTART, "wide", "linear")
    (zone,) = classed(first, "zone")
    highest = min(min(ys(one)) for one in plotted(first, "ln"))
    assert highest == pytest.approx(float(zone.get("y", "")), abs=0.1)
    assert len(classed(first, "tip-up")) == 2
