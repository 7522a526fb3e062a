"""reports/sections/approximate.py: errors over size and N, and crossovers."""

from pathlib import Path

from attnbench.reports.analysis import approximate
from attnbench.reports.sections import approximate as approximate_section
from tests.made_runs import inexact
from tests.reports.rendering import blocks_of, figures_of, rows_of, sentences


def test_an_output_that_carries_no_information_is_in_no_trade_off_and_the_page_says_why(
    tmp_path: Path,
) -> None:
    silent = {"linformer": 0.004, "linformer:64": -0.02}
    blocks = blocks_of(approximate_section, inexact(tmp_path, cosines=silent))
    errors, times = figures_of(blocks)
    assert [series.backend for series in times.panels[0].series] == ["fused", "sdpa", "performer"]
    assert times.title.replace("\u00a0", " ") == (
        "faster than fused and sdpa: performer at N = 4k, the longest (error 5 % at N = 4k)"
    )
    assert not any("linformer" in row[0] for row in times.table.rows)
    (why,) = [one for one in sentences(blocks) if "no trade-off" in one.lower()]
    assert why.replace("\u00a0", " ").startswith(
        "No trade-off is drawn for linformer and linformer:64: at N = 4k the cosine of their"
        " outputs and the exact one is at most 0.02 (below 0.1 counts as none)."
    )
    assert "made to be learnt" in why
    cosines = {(row[1], row[4]) for row in errors.table.rows}
    assert {("linformer", "0.00"), ("linformer:64", "-0.02"), ("performer", "0.90")} <= cosines


def test_rows_of_earlier_versions_have_no_cosine_and_are_drawn(tmp_path: Path) -> None:
    blocks = blocks_of(approximate_section, inexact(tmp_path, cosines={"linformer": None}))
    errors, times = figures_of(blocks)
    assert "linformer" in [series.backend for series in times.panels[0].series]
    assert ("linformer", "not measured") in {(row[1], row[4]) for row in errors.table.rows}


def test_if_no_output_carries_information_nothing_is_faster(tmp_path: Path) -> None:
    run = inexact(tmp_path, backends=("sdpa", "linformer"), cosines={"linformer": 0.004})
    (group,) = approximate.approximating(rows_of(run))
    assert approximate.crossovers(group) == []
    assert approximate.finding(group) == (
        "nothing to trade time for: the output of linformer carries no information"
    )
    assert len(figures_of(blocks_of(approximate_section, run))) == 1


def test_pools_are_a_method_of_their_own() -> None:
    names = ("linformer", "linformer:64", "linformer:pool64", "performer:512", "mine")
    assert [approximate.method(name) for name in names] == [
        "linformer", "linformer", "linformer:pool", "performer", "mine",
    ]  # fmt: skip
