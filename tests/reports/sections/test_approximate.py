"""reports/sections/approximate.py: errors over size and N, and crossovers."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.analysis import approximate
from attnbench.reports.elements import Figure, Table, Text
from attnbench.reports.sections import approximate as approximate_section
from attnbench.reports.sections import recurrence as recurrence_section
from attnbench.reports.sections._trained_projections import in_trained_models
from tests.reports.fake_inexact import LENGTHS, inexact
from tests.reports.fake_runs import write_run
from tests.reports.fake_trainings import projected, with_trainings
from tests.reports.rendering import blocks_of, figures_of, rows_of, sentences


def test_the_section_on_approximations_draws_errors_and_times(tmp_path: Path) -> None:
    errors, times = figures_of(blocks_of(approximate_section, inexact(tmp_path)))
    over_size, over_n = errors.panels
    assert {series.backend: series.x for series in over_size.series} == {
        "linformer": (64, 256),
        "performer": (256,),
    }
    assert next(
        series.y for series in over_size.series if series.backend == "linformer"
    ) == pytest.approx((0.34, 0.12))
    assert {series.x for series in over_n.series} == {LENGTHS}
    assert errors.title == "at N\u00a0=\u00a04k performer is off by 5 %, linformer:64 by 34 %"
    assert len(errors.table.rows) == 3 * len(LENGTHS)
    assert (
        times.title.replace("\u00a0", " ")
        == "faster than fused and sdpa: performer at N = 4k, the longest (error 5 % at N = 4k) and"
        " linformer from N = 2k on (error 12 % at N = 4k)"
    )
    assert [series.backend for series in times.panels[0].series] == [
        "fused",
        "sdpa",
        "linformer",
        "linformer:64",
        "performer",
    ]
    assert (
        "linformer",
        "sdpa",
        "from N = 2k on (slower up to 1k, even at about 1500)",
    ) in times.table.rows


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


def test_every_line_over_the_size_is_named_by_the_legend(tmp_path: Path) -> None:
    """No backend is called `linformer:pool`: its line was grey and without a name."""
    run = inexact(tmp_path, backends=("linformer", "linformer:64", "performer"))
    text = (run / "rows.jsonl").read_text() + (run / "run.json").read_text()
    assert "linformer:64" in text
    for file in (run / "rows.jsonl", run / "run.json"):
        pooled = file.read_text().replace("linformer:64", "linformer:pool64")
        file.write_text(pooled.replace('"linformer"', '"linformer:pool256"'))
    errors = next(iter(figures_of(blocks_of(approximate_section, run))))
    over_size = next(panel for panel in errors.panels if "rank" in panel.x_label)
    assert {series.backend: series.x for series in over_size.series} == {
        "linformer:pool256": (64, 256),
        "performer": (256,),
    }


def test_without_an_exact_backend_the_section_has_the_errors_only(tmp_path: Path) -> None:
    run = inexact(tmp_path, backends=("linformer",))
    blocks = blocks_of(approximate_section, run)
    assert [type(block) for block in blocks] == [Text, Figure]
    (group,) = approximate.approximating(rows_of(run))
    assert (
        approximate.finding(group)
        == "approximate attention was timed without an exact backend to compare with"
    )


@pytest.mark.parametrize("section", [approximate_section, recurrence_section])
def test_a_run_without_inexact_backends_has_one_line(tmp_path: Path, section: Any) -> None:
    for name, run in (
        ("none", write_run(tmp_path / "a", [], [])),
        ("exact", inexact(tmp_path / "b", backends=("fused", "sdpa"))),
    ):
        (block,) = blocks_of(section, run)
        assert isinstance(block, Text), name
        assert block.kind == "note"


def test_trained_models_show_quality_beside_cost(tmp_path: Path) -> None:
    exact, trained = projected("exact", 0.9, 4.0), projected("trained", 0.8, 2.0)
    run = with_trainings(tmp_path, exact + trained)
    *_, answer, figure, causal = blocks_of(approximate_section, run)
    assert answer.text == (
        "Right answers in recall after training, rank 12 for 96 tokens: exact: 90.0 % (85.6 to"
        " 94.4); trained, from means: 80.0 % (75.6 to 84.4)."
    )
    assert figure.table.rows[1] == (
        "recall, trained, from means",
        "80.0 % (75.6 to 84.4)",
        "10.0 (10.0 to 10.0)",
        figure.table.rows[1][3],
        "0.50 (0.50 to 0.50)",
        "1 MiB",
    )
    assert figure.names == ("exact", "trained, from means")
    assert [series.backend for series in figure.panels[0].series] == list(figure.names)
    assert "A causal model cannot have such projections" in causal.text
    assert list(in_trained_models({"a": {"studies": []}})) == []


def test_what_projections_keep_is_a_table_with_intervals(tmp_path: Path) -> None:
    kept = {"inputs": "independent tokens", "projections": "trained", "seq_len": 64, "rank": 8}
    kept |= {"seeds": 5, "output_cosine": 0.64, "error_l2_ratio": 0.77}
    kept |= {"output_cosine_low": 0.63, "output_cosine_high": 0.65}
    kept |= {"error_l2_ratio_low": 0.76, "error_l2_ratio_high": 0.78}
    run = {"studies": [{"study": "linformer_projections", **kept}]}
    (one,) = approximate.projections(run)
    assert approximate.projection_texts(one) == (
        "0.64 (0.63 to 0.65)",
        "77 % (76 % to 78 %)",
    )
    for broken in ({"output_cosine": None}, {"rank": "8"}, {"inputs": 3}):
        assert not approximate.projections(
            {"studies": [{"study": "linformer_projections", **kept, **broken}]}
        )
    (table,) = [
        block for block in approximate_section._projections({"a": run}) if isinstance(block, Table)
    ]
    assert table.rows == (
        ("independent tokens", "trained", "0.64 (0.63 to 0.65)", "77 % (76 % to 78 %)"),
    )
