"""reports/subjects/heads.py: heads are compared with heads, and the curve over h comes first."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports import contrasts
from attnbench.reports.claims.times import time_of_heads
from attnbench.reports.elements import DotPlot, Figure
from attnbench.reports.pages.report import open_report
from attnbench.reports.pages.terminal import render_briefly
from attnbench.reports.subjects import heads
from tests.made_runs import grid, head_sweep, row, write_run
from tests.reports.rendering import card_of, page_of, rows_of, subject_of, tables_of, text_of

SAID = "sdpa used its efficient kernel with 1 head and cuDNN with 8: this compares kernels"


def with_kernels(parent: Path) -> Path:
    """One head and eight; sdpa runs another kernel with one."""
    cases = grid(("fused", "sdpa"), (512, 1024), (1, 8))

    def kernel(one: Any) -> str:
        if one["backend"] == "fused":
            return "bmm"
        return "efficient" if one["heads"] == 1 else "cudnn"

    rows = [row(one, kernel=kernel(one)) for one in cases]
    return write_run(parent, cases, rows, name="quickstart")


def test_two_kernels_are_no_verdict_on_heads(tmp_path: Path) -> None:
    run = with_kernels(tmp_path)
    card = card_of(heads, run)
    assert SAID in card.sentence
    before = card.sentence.partition(SAID)[0]
    assert "fused" in before
    assert "sdpa" not in before
    assert "sdpa" not in card.sure
    assert isinstance(card.picture, DotPlot)
    for one in card.picture.rows:
        if one.label == "sdpa" and one.group in ("Time", "Peak memory"):
            assert (one.dot, one.missing) == (None, "compares kernels")
    (table,) = (one for one in tables_of(list(subject_of(heads, run).blocks)))
    words = {
        line[1]: line[table.columns.index("in words")] for line in table.texts if line[2] == "8"
    }
    assert words["sdpa"] == "compares kernels"
    assert words["fused"] != "compares kernels"
    assert any(SAID in str(line) for line in render_briefly(open_report([run])))


def test_a_claim_on_the_time_of_heads_is_not_decided_by_two_kernels(tmp_path: Path) -> None:
    class Run:
        rows = rows_of(with_kernels(tmp_path))

    found = [one for one in time_of_heads.test(Run()) if one.of == "sdpa"]
    assert found
    assert {one.verdict for one in found} == {"not decided"}
    assert all("this compares kernels" in one.numbers for one in found)


def test_the_page_of_head_cost_begins_with_the_curve_over_h(tmp_path: Path) -> None:
    run = head_sweep(tmp_path)
    card = card_of(heads, run)
    assert card.title == "8 heads against one"
    assert isinstance(card.picture, Figure)
    assert [one.x_label for one in card.picture.panels] == ["heads h"] * 2
    assert all(one.line == (1, "") and one.wide_line for one in card.picture.panels)
    page = page_of(run)
    first = page.index("<svg")
    assert "heads h" in page[first : page.index("</svg>", first)]
    assert "8 heads against one" in text_of(page)
    figures = [one for one in subject_of(heads, run).blocks if one == card.picture]
    assert not figures, "it is not drawn twice"


@pytest.mark.parametrize("axis", ["mask", "dtype"])
def test_other_contrasts_name_both_kernels_and_keep_their_verdict(
    axis: str, tmp_path: Path
) -> None:
    base, more = {"mask": ({}, {"mask": "padding"}), "dtype": ({}, {"dtype": "bf16"})}[axis]
    cases = [*grid(("sdpa",), (512,), **base), *grid(("sdpa",), (512,), **more)]
    for one, name in zip(cases, ("a", "b"), strict=True):
        one["case"] += name
    rows = [row(one, kernel=name) for one, name in zip(cases, ("flash", "math"), strict=True)]
    ((_, (found,)),) = contrasts.contrasts(rows_of(write_run(tmp_path, cases, rows)), axis)
    assert "this compares kernels" in found.kernels
    assert found.of_heads
