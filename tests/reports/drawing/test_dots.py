"""reports/drawing/bars.py: dots on a log axis, words and numbers beside them."""

import pytest

from attnbench.reports.elements import Dot, DotPlot, DotRow
from tests.reports.drawing.drawings import EMPTY, WIDTHS, check_texts, marks, names, parts, said


def dots(*rows: DotRow) -> DotPlot:
    return DotPlot(rows=rows, x_label="ratio of <8> heads", band_ratio=0.05, table=EMPTY)


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


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_covers_another_or_leaves_the_drawing(width: str) -> None:
    (svg,) = parts(PLOT, width)
    check_texts(svg)
    assert "Peak memory, naive: ×1.11" in said(svg)
    assert "Time, fused: ×1.59 (1.10 to 2.20)" in said(svg)


@pytest.mark.parametrize("width", WIDTHS)
def test_long_names_are_whole(width: str) -> None:
    long = ("attend@my_attention", "sdpa:flash", "hf:flex_attention", "linformer[rank=32]")
    headings = ("prefill of 4k tokens, layers of a window of 1 024", "decode")
    (svg,) = parts(dots(*(timed(name, 1.5, 1.2, 2) for name in long)), width)
    check_texts(svg)
    assert all(name in names(svg) for name in long)
    (headed,) = parts(dots(*(counted(at, name, 2) for at in headings for name in long)), width)
    check_texts(headed)


def test_ratios_further_from_one_lie_further_out() -> None:
    (svg,) = parts(dots(counted("a", "naive", 2), counted("b", "naive", 4)))
    (near, _), (far, _) = marks(svg, fill="var(--b0)")
    assert near < far


def test_an_interval_without_end_stays_in_the_drawing() -> None:
    (svg,) = parts(dots(timed("naive", 2, 0, float("inf"))))
    (bar,) = (one for one in svg.iter("path") if one.get("opacity") == "0.38")
    numbers = [float(one) for one in bar.get("d", "").replace("L", " ").strip("Mz ").split()]
    assert 0 <= min(numbers[::2]) < max(numbers[::2]) <= 632


def test_no_rows_are_no_error() -> None:
    assert parts(dots())[0].get("role") == "img"
