"""Advice as a page: the answers first, then the numbers; whole without any run too."""

from pathlib import Path

from attnbench.reports.advice.answer import advise
from attnbench.reports.advice.stored import StoredRows
from attnbench.reports.pages.advice.page import memory_figure, render
from tests.reports.fake_advice import EAGER, SDPA, FakeShapes, inquiry, measured, rows_of

LENGTHS = (128, 256, 512, 1024)


def test_the_page_begins_with_which_attention_and_what_fits(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    folder = measured(tmp_path, asked, LENGTHS, changes={"hf:eager": {"speed": 8.0}})
    text = render(advise(asked, rows_of(asked, folder)))
    order = [
        "<h1>Attention for mine</h1>",
        "Which attention",
        "(faster than eager)",
        "How long a context fits",
        "Kinds of layers",
        "attnbench run --model ./mine",
        "All rows",
    ]
    places = [text.index(part) for part in order]
    assert places[0] < places[1] < places[3]
    assert "sdpa (kernel hf:sdpa kernel) takes " in text
    assert text.count("Not included: ") == 1
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_the_same_rows_give_the_same_bytes(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    folder = measured(tmp_path, asked, LENGTHS)
    one, two = (render(advise(asked, rows_of(asked, folder))) for _ in range(2))
    assert one == two


def test_without_runs_the_page_has_bytes_by_formula_and_says_that_nothing_is_measured():
    asked = inquiry(shapes=FakeShapes(formulas={"hf:sdpa": 7}))
    text = render(advise(asked, StoredRows()))
    assert "Nothing is measured yet" in text
    assert "3,604 tokens with sdpa" in text


def test_the_picture_has_the_budget_and_a_line_for_each_known_implementation(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    advice = advise(asked, rows_of(asked, measured(tmp_path, asked, LENGTHS)))
    figure = memory_figure(advice)
    assert figure is not None
    (panel,) = figure.panels
    assert panel.line == (4_000_000.0, "3.8 MiB")
    names = [series.backend for series in panel.series]
    assert names == ["weights", "keys and values", "hf:eager", "hf:sdpa"]
    below, above = panel.series[1], panel.series[2]
    pairs = [(low, high) for low, high in zip(below.y, above.y, strict=True) if low and high]
    assert len(pairs) > 3
    assert all(low < high for low, high in pairs)


def test_a_model_without_prefill_has_no_picture():
    assert memory_figure(advise(inquiry(phases=("decode",)), StoredRows())) is None


def test_foreign_text_is_escaped():
    asked = inquiry(model="<script>alert(1)</script>", config="<b>")
    assert "<script>alert" not in render(advise(asked, StoredRows()))
