"""The pages and tables of what others published say whose numbers they are, and give no verdict."""

import re
from html import unescape

import pytest

from attnbench.harness.published.tables import names, read
from attnbench.reports.data.load import rows_of
from attnbench.reports.data.read import read_runs
from attnbench.reports.pages.html import render
from attnbench.reports.published.page import wall
from attnbench.reports.published.text import NOT_OURS, beside, origin, tables_of
from tests.conftest import ROOT

REFERENCE = ROOT / "results" / "reference"
RUNS = [REFERENCE / "h200-20261126-quickstart", REFERENCE / "cpu-20261126-published"]
NARROW = "\N{NARROW NO-BREAK SPACE}"  # of length_text
VERDICTS = ("faster", "slower", "not confirmed", "the same")


def plain(text):
    return text.replace(NARROW, " ")


@pytest.mark.parametrize("name", names())
def test_a_table_says_that_it_is_not_ours_and_where_it_is_from(name):
    source = read(name)
    assert all(NOT_OURS in table.title for table in tables_of(source, "2"))
    assert source.about["url"] in origin(source)
    assert "Licence" in origin(source)


def test_the_page_has_points_walls_formulas_and_marks_of_ours():
    page = wall(read_runs(RUNS), "2")
    memory, time = (card.picture for card in page.cards)
    kinds = {(one.backend, one.kind) for one in memory.panels[0].series}
    assert {
        ("PyTorch Attention (published)", "measured"),
        ("PyTorch Attention (published)", "failed"),
        ("formula of FlashAttention", "formula"),
        ("fused, ours (CPU)", "measured"),
    } <= kinds
    assert not any(", ours" in one.backend for one in time.panels[0].series)  # its run has no times
    assert "out of memory at 8 192; the formula ends at 6 396" in plain(page.answer)
    assert page.cards[0].subtitle.startswith("b16 h8 d64 fp16, forward and backward")
    assert all(", ours" in name for name in memory.names)  # only these have a colour
    assert not any(one.low for panel in memory.panels for one in panel.series)  # no interval


def test_more_heads_at_equal_width_are_told_from_our_own_run():
    page = wall(read_runs(RUNS[:1]), "2")
    (part,) = (part for one in page.sections for part in one.parts if part.name == "heads")
    (table,) = part.blocks
    assert {row[3] for row in table.rows} == {8}
    assert all(row[5].value == 8 for row in table.rows)


def test_the_page_is_marked_and_has_no_verdict():
    text = unescape(render(wall([], "2.5")))
    visible = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    assert NOT_OURS in visible
    assert "2.5 forward passes" in visible
    assert not [word for word in VERDICTS if word in visible]
    assert "475 TFLOP/s" in visible
    assert "flash-attention#477" in visible


def test_a_run_is_held_beside_equal_shapes_only_by_ratios():
    rows = rows_of(read_runs(RUNS))
    table = beside(read("flashattention-a100"), rows)
    assert NOT_OURS in table.title
    fused = [row for row in table.rows if row[2:4] == ("PyTorch Attention", "fused")]
    assert [round(row[-1].value, 4) for row in fused] == [0.6667, 0.6923, 0.7143]  # 3 S + 6 T
    assert "time" not in table.columns  # a CPU's says nothing of a GPU's
    assert not beside(read("cudnn-h200"), rows).rows
