"""reports/drawing/dot_plot.py: dots on a log axis, words and numbers beside them."""

from xml.etree import ElementTree

import pytest

from attnbench.reports.drawing.dot_plot import Width, draw
from attnbench.reports.drawing.palette import places_of
from attnbench.reports.elements import Dot, DotPlot, DotRow, Table
from tests.reports.drawing.test_wall_chart import check_texts, classed

BACKENDS = ["naive", "fused", "sdpa"]
WIDTHS: tuple[Width, ...] = ("wide", "narrow")


def dots(*rows: DotRow) -> DotPlot:
    return DotPlot(
        rows=rows,
        x_label="ratio of <8> heads",
        band_ratio=0.05,
        table=Table(title="", columns=(), rows=()),
    )


def counted(group: str, label: str, ratio: float) -> DotRow:
    word = "same" if ratio == 1 else "more"
    return DotRow(group=group, label=label, dot=Dot(ratio=ratio, word=word), remark="counted")


def timed(label: str, ratio: float, low: float, high: float) -> DotRow:
    dot = Dot(ratio=ratio, low=low, high=high, word="not decided")
    return DotRow(group="Time", label=label, dot=dot, remark="95 % interval")


PLOT = dots(
    counted("FLOPs", "all 3", 1),
    counted("Exponentials", "all 3", 8),
    counted("Peak memory", "naive", 1.11),
    counted("Peak memory", "fused", 8),
    counted("Peak memory", "sdpa", 0.86),
    timed("naive", 1.67, 1.2, 2.3),
    timed("fused", 1.59, 1.1, 2.2),
    DotRow(group="Time", label="sdpa", dot=None, missing="no pair", remark="95 % interval"),
)


def svg(plot: DotPlot, width: Width = "wide") -> ElementTree.Element:
    return ElementTree.fromstring(draw(plot, places_of(BACKENDS), width))


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_covers_another_or_leaves_the_drawing(width: Width) -> None:
    check_texts(svg(PLOT, width))


@pytest.mark.parametrize("width", WIDTHS)
def test_long_names_are_whole(width: Width) -> None:
    names = ("attend@my_attention", "sdpa:flash", "hf:flex_attention", "linformer[rank=32]")
    headings = ("prefill of 4k tokens, layers of a window of 1 024", "decode")
    drawing = svg(dots(*(timed(name, 1.5, 1.2, 2) for name in names)), width)
    check_texts(drawing)
    said = "".join(one.text or "" for one in classed(drawing, "lb"))
    assert all(name in said for name in names)
    headed = dots(*(counted(heading, name, 2) for heading in headings for name in names))
    check_texts(svg(headed, width))


def test_ratios_further_from_one_lie_further_out() -> None:
    drawing = svg(dots(counted("a", "naive", 2), counted("b", "naive", 4)))
    marks = [float(one.get("cx", "")) for one in classed(drawing, "f-0") if one.tag == "circle"]
    assert marks[0] < marks[1]


def test_an_interval_without_end_stays_in_the_drawing() -> None:
    plot = dots(timed("naive", 2, 0, float("inf")))
    drawing = svg(plot)
    (bar,) = classed(drawing, "ci")
    assert float(bar.get("x", "")) + float(bar.get("width", "")) <= 476


def test_no_rows_are_no_error() -> None:
    assert svg(dots()).get("role") == "img"
