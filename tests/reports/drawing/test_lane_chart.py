"""reports/drawing/lane_chart.py: what happens at the same time, on one scale."""

import re
from xml.etree import ElementTree

import pytest

from attnbench.reports.drawing.lane_chart import MOST_TICKS, Width, draw, tick_step
from attnbench.reports.elements import Lane, LaneChart, LanePanel, Span, Table
from tests.reports.drawing.test_wall_chart import overlapping, texts

WIDTHS: tuple[Width, ...] = ("wide", "narrow")


def lanes(*every: Lane, end: float = 6000.0) -> LaneChart:
    return LaneChart(
        title="",
        caption="",
        description="<lanes>",
        x_label="cycles",
        end=end,
        legend=(("product", "matrix products"), ("softmax", "softmax"), ("load", "copies")),
        panels=(LanePanel(heading="Heads 64 wide", remark="128 × 128", lanes=every),) * 2,
        table=Table(title="", columns=(), rows=()),
    )


def span(start: float, end: float, label: str = "softmax") -> Span:
    return Span(start=start, end=end, label=label, look="softmax")


TWO = (
    Lane(label="consumer 1", spans=(span(0, 2000), span(3000, 5000, "PV"))),
    Lane(label="tensor cores", spans=(span(1000, 4000),), note="65 %"),
)


def spans(svg: str) -> list[tuple[float, float]]:
    found = re.findall(r'<rect class="k-softmax" x="([-.\d]+)"[^>]* width="([-.\d]+)" h', svg)
    return [(float(x), float(width)) for x, width in found[1:]]  # the first is the legend's


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_covers_another_or_leaves_the_drawing(width: Width) -> None:
    drawing = ElementTree.fromstring(draw(lanes(*TWO), width))
    assert overlapping(texts(drawing)) == []
    _, _, wide, high = map(float, drawing.get("viewBox", "").split())
    for words in texts(drawing):
        assert 0 <= words.left <= words.right <= wide + 2, words
        assert words.bottom <= high, words
    assert drawing.get("aria-label") == "<lanes>"


@pytest.mark.parametrize("width", WIDTHS)
def test_lengths_are_durations(width: Width) -> None:
    (x, first), (later, second), (_, long), *_ = spans(draw(lanes(*TWO), width))
    assert first == pytest.approx(second, abs=0.2)
    assert long + 2 == pytest.approx(1.5 * (first + 2), abs=0.3)  # spans are inset
    assert later - x == pytest.approx(1.5 * (first + 2), abs=0.3)


def test_what_lies_beyond_the_chart_is_cut_off_or_left_out() -> None:
    beyond = Lane(label="block", spans=(span(-500, 500), span(5500, 9000), span(7000, 8000)))
    first, last = spans(draw(lanes(beyond), "wide"))[:2]
    assert first[1] == pytest.approx(last[1], abs=0.2)
    assert len(spans(draw(lanes(beyond), "wide"))) == 4


def test_a_name_that_has_no_room_is_left_out() -> None:
    drawn = draw(lanes(Lane(label="block", spans=(span(0, 100),))), "wide")
    assert drawn.count(">softmax</text>") == 1  # in the legend
    assert "<img" not in draw(lanes(Lane(label="<img>", spans=())), "narrow")


@pytest.mark.parametrize("end", [1, 7, 640, 6324, 1e6])
def test_ticks_are_few_and_round(end: float) -> None:
    step = tick_step(end)
    assert 2 <= end / step <= MOST_TICKS
    assert f"{step:e}"[0] in "125"
