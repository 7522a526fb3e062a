"""Which implementation is fastest over all layers, and what leaves that open."""

from pathlib import Path

import pytest

from attnbench.reports.advice.choices import decide
from attnbench.reports.advice.stored import StoredRows
from tests.reports.fake_advice import EAGER, FLEX, SDPA, FakeShapes, inquiry, measured, rows_of


def names(decision) -> list[str]:
    return [one.implementation.name for one in decision.choices]


def test_the_fastest_over_all_layers_comes_first_and_clear_ratios_are_slower(tmp_path: Path):
    asked = inquiry()
    speeds = {
        "hf:eager": {"speed": 8.0},
        "hf:sdpa": {"speed": 1.0},
        "hf:flex_attention": {"speed": 64.0},
    }
    decision = decide(
        asked, rows_of(asked, measured(tmp_path, asked, changes=speeds)), "prefill", 1024
    )
    assert names(decision) == ["sdpa", "eager", "flex_attention"]
    assert decision.best is not None
    assert decision.best.against is None
    against = [one.against for one in decision.choices[1:]]
    assert [one.verdict for one in against if one] == ["slower", "slower"]
    assert against[0] is not None
    assert against[0].low < 8 < against[0].high
    assert against[0].paired


def test_times_of_all_layers_are_counted_times_their_calls(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    decision = decide(asked, rows_of(asked, measured(tmp_path, asked)), "prefill", 1024)
    best = decision.best
    assert best is not None
    assert best.total_ms is not None
    full, other = best.cells
    assert full.time_ms is not None
    assert other.time_ms is not None
    assert best.total_ms.value == pytest.approx(3 * full.time_ms.value + 2 * other.time_ms.value)
    assert best.total_ms.low == pytest.approx(3 * full.time_ms.low + 2 * other.time_ms.low)
    assert full.kernel == "hf:sdpa kernel"


def test_equal_times_are_not_told_apart(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    decision = decide(asked, rows_of(asked, measured(tmp_path, asked)), "prefill", 1024)
    (tie,) = decision.ties
    assert tie.against is not None
    assert tie.against.verdict in ("same", "undecided")
    assert tie.against.low < 1 < tie.against.high


def test_what_ran_out_of_memory_stands_last_with_its_reason(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    folder = measured(tmp_path, asked, changes={"hf:eager": {"status": "oom"}})
    decision = decide(asked, rows_of(asked, folder), "prefill", 1024)
    assert names(decision) == ["sdpa", "eager"]
    assert decision.choices[1].total_ms is None
    assert decision.choices[1].why_not.startswith("oom: DefaultCPUAllocator")
    assert not decision.missing


def test_without_a_row_an_implementation_is_missing_and_no_number_is_made_up(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA, FLEX))
    folder = measured(tmp_path, asked, implementations=(SDPA,))
    decision = decide(asked, rows_of(asked, folder), "prefill", 1024)
    assert names(decision) == ["sdpa", "eager", "flex_attention"]
    assert decision.missing == [EAGER, FLEX]
    assert all(one.total_ms is None for one in decision.choices[1:])


def test_nothing_stored_gives_no_best():
    decision = decide(inquiry(), StoredRows(), "prefill", 1024)
    assert decision.best is None
    assert [one.implementation for one in decision.choices] == [EAGER, SDPA, FLEX]
    assert all(one.why_not == "not measured" for one in decision.choices)


def test_rows_of_two_runs_are_not_decided_where_nothing_is_known_between_runs(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA))
    first = measured(tmp_path / "a", asked, implementations=(SDPA,))
    second = measured(
        tmp_path / "b",
        asked,
        implementations=(EAGER,),
        changes={"hf:eager": {"speed": 5.0, "session": "another"}},
    )
    decision = decide(asked, rows_of(asked, first, second), "prefill", 1024)
    against = decision.choices[1].against
    assert against is not None
    assert against.verdict == "undecided"
    assert not against.paired
    assert "between_runs" in against.reasons


def test_a_layer_that_cannot_be_measured_is_named_and_in_no_total(tmp_path: Path):
    asked = inquiry(shapes=FakeShapes(strange=True), implementations=(SDPA,))
    decision = decide(asked, rows_of(asked, measured(tmp_path, asked)), "prefill", 1024)
    assert [one.why for one in decision.not_measured] == ["has latent heads"]
    assert decision.best is not None
    assert [cell.asked.layer for cell in decision.best.cells] == ["full", "other"]


def test_the_peak_is_that_of_the_layer_that_needs_most(tmp_path: Path):
    asked = inquiry(implementations=(SDPA,))
    decision = decide(asked, rows_of(asked, measured(tmp_path, asked)), "prefill", 1024)
    assert decision.best is not None
    peaks = [cell.peak_bytes for cell in decision.best.cells]
    assert decision.best.peak_bytes == max(peak for peak in peaks if peak is not None)
