"""reports/drawing/wall_chart.py: scales, ends of lines, and texts that do not cover each other."""

import re
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from attnbench.reports.drawing.marks import BOLD_EM, TEXT_EM
from attnbench.reports.drawing.palette import places_of
from attnbench.reports.drawing.wall_chart import draw
from attnbench.reports.elements import Scale, Table, WallChart, WallLine, WallPoint

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
) -> WallLine:
    points = []
    for n in LENGTHS:
        need = int(quadratic * n * n + linear * n)
        out = "predicted_oom" if need > 4 * budget else "oom"
        points.append(WallPoint(seq_len=n, need_bytes=need, end="ok" if need <= budget else out))
    stop = max((n for n in range(256, 8192) if quadratic * n * n + linear * n <= budget), default=0)
    stops = points[-1].end != "ok"
    return WallLine(backend=backend, points=tuple(points), stop_n=stop if stops else None)


def chart(*panels: Sequence[WallLine], budget: int | None = 512 * MIB) -> WallChart:
    return WallChart(
        panels=tuple((f"{place} heads", tuple(lines)) for place, lines in enumerate(panels, 1)),
        budget_bytes=budget,
        description="memory <over> N",
        table=Table(title="", columns=(), rows=()),
    )


QUICKSTART = chart(
    [line("naive", 8), line("fused", 64), line("sdpa", 0)],
    [line("naive", 8), line("fused", 8), line("sdpa", 0)],
)


def svg(of: WallChart, version: str = "wide", scale: Scale = "log") -> ElementTree.Element:
    names = list(dict.fromkeys(one.backend for _, lines in of.panels for one in lines))
    assert version in ("wide", "narrow")
    drawing = draw(of, places_of(names), version, scale, {})  # type: ignore[arg-type]
    return ElementTree.fromstring(drawing)


def texts(drawing: ElementTree.Element) -> list[Words]:
    """Each text with the box that it fills at most."""
    found = []
    for one in drawing.iter("text"):
        classes = one.get("class", "").split()
        size = 14 if "narrow" in drawing.get("class", "") or {"lb", "pt"} & set(classes) else 13
        wide = (
            len(one.text or "") * size * (BOLD_EM if {"lb", "pt", "wl"} & set(classes) else TEXT_EM)
        )
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
    drawing = svg(chart([*lines, line("fused", 64)]), version, scale)
    check_texts(drawing)
    assert {f"backend:{place}" for place in range(9)} <= set(contents(drawing))


@pytest.mark.parametrize(("version", "scale"), VERSIONS)
def test_everything_lies_within_the_view_box(version: str, scale: Scale) -> None:
    drawing = svg(QUICKSTART, version, scale)
    check_texts(drawing)
    _, _, width, height = map(float, drawing.get("viewBox", "").split())
    for cross in classed(drawing, "hollow"):
        assert min(ys(cross)) > 0
    for x, y in (found for one in classed(drawing, "cross") for found in starts(one)):
        assert 0 < x < width - 11
        assert 0 < y < height - 11


def starts(cross: ElementTree.Element) -> list[tuple[float, float]]:
    """Where the two strokes of a cross begin."""
    pairs = re.findall(r"M(-?[\d.]+) (-?[\d.]+)", cross.get("d", ""))
    return [(float(x), float(y)) for x, y in pairs]


def test_readers_of_the_screen_hear_the_right_scale_and_all_values_at_an_n() -> None:
    for scale, word in (("log", "logarithmic"), ("linear", "linear")):
        drawing = svg(QUICKSTART, "wide", scale)  # type: ignore[arg-type]
        assert (drawing.get("aria-label") or "").endswith(f"Both axes are {word}.")
    titles = [one.findtext("title") or "" for one in classed(drawing, "at")]
    assert len(titles) == 2 * len(LENGTHS)
    assert re.match(r"N = 8\s192\nfused [\d.]+ GiB, not tried\nnaive", titles[len(LENGTHS) - 1])


def test_crosses_lie_beyond_the_budget_line() -> None:
    drawing = svg(QUICKSTART)
    budget = ys(classed(drawing, "bud")[0])[0]
    hollow = classed(drawing, "hollow")
    assert (len(hollow), len(classed(drawing, "cross"))) == (1, 4)
    assert all(max(ys(one)) < budget for one in hollow)
    for one in classed(drawing, "cross"):
        assert starts(one)[0][1] + 5.5 < budget


def test_a_case_whose_need_nobody_knows_stands_on_the_budget_line() -> None:
    points = (*line("fused", 64).points[:4], WallPoint(seq_len=4096, need_bytes=None, end="oom"))
    drawing = svg(chart([WallLine(backend="fused", points=points)]))
    (cross,) = classed(drawing, "cross")
    (budget,) = classed(drawing, "bud")
    middle = float(re.findall(r"M[\d.]+ ([\d.]+)l([\d.]+)", cross.get("d", ""))[0][0]) + 5.5
    assert middle == pytest.approx(ys(budget)[0], abs=0.2)


def test_a_single_point_can_be_drawn() -> None:
    point = WallPoint(seq_len=512, need_bytes=MIB, end="ok")
    drawing = svg(chart([WallLine(backend="fused", points=(point,))]))
    assert "fused" in contents(drawing)
