"""Which implementation is fastest over all layers, and what leaves that open."""

import json
import math
from pathlib import Path

import pytest

from attnbench.reports.advise.choices import decide
from attnbench.reports.advise.stored import StoredRows
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


LENGTHS = (128, 256, 512, 1024, 2048)


def checks(folder: Path, count: int = 1, run_sd: float = 0.0, **changes: float) -> None:
    """Self-checks beside a run, whose starts alternate by `run_sd`."""
    for start in range(count):
        level = 2 * math.exp(run_sd * (-1) ** start)
        processes = [[[level * math.exp(0.02 * k)]] for k in (-1, 0, 1, -1, 1)]
        line = {
            "schema": 1,
            "device": "cpu",
            "started_utc": f"2026-11-21T{start:02}:00:00+00:00",
            "environment": {"cpu": "Imaginary CPU 9000"},
            "samples": {"naive-0": processes, "naive-1": processes},
        }
        line |= {"paired_noise_ratio": 0.02, "run_noise_ratio": 0.06, **changes}
        with (folder / "selfcheck.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def fitted_decision(parent: Path, speed: float, *, one_run: bool):
    """At a length between measured ones, where eager takes `speed` times as long in all rows."""
    asked = inquiry(implementations=(EAGER, SDPA), contexts=(1536,))
    slower = {"hf:eager": {"speed": speed}}
    if one_run:
        folders = [measured(parent, asked, LENGTHS, changes=slower)]
    else:
        other = {"hf:eager": {**slower["hf:eager"], "session": "another"}}
        folders = [
            measured(parent / "a", asked, LENGTHS, implementations=(SDPA,)),
            measured(parent / "b", asked, LENGTHS, other, implementations=(EAGER,)),
        ]
    decision = decide(asked, rows_of(asked, *folders), "prefill", 1536)
    assert names(decision) == ["sdpa", "eager"]
    against = decision.choices[1].against
    assert against is not None
    return against


def test_fitted_times_of_one_run_are_told_apart_where_they_clearly_differ(tmp_path: Path):
    against = fitted_decision(tmp_path, 6.0, one_run=True)
    assert against.verdict == "slower"
    assert against.low > 1.03


def test_fitted_times_of_two_runs_decide_nothing_if_it_is_not_known_how_runs_differ(
    tmp_path: Path,
):
    against = fitted_decision(tmp_path, 6.0, one_run=False)
    assert against.verdict == "undecided"
    assert against.reasons[0] == "between_runs"


def test_fitted_times_of_two_runs_allow_for_what_runs_differ_by(tmp_path: Path):
    checks(tmp_path, 6, run_sd=0.1)
    widths = []
    for name, speed, verdict in (("far", 60.0, "slower"), ("near", 1.2, "undecided")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").mkdir()
        (tmp_path / name / "a" / "selfcheck.jsonl").write_bytes(
            (tmp_path / "selfcheck.jsonl").read_bytes()
        )
        against = fitted_decision(tmp_path / name, speed, one_run=False)
        assert against.verdict == verdict
        widths.append(math.log(against.high / against.low))
    assert min(widths) > 2 * math.log(1.2), "runs differ by 20 %, and only six checks say so"


def test_a_fitted_time_from_disturbed_rows_convicts_nobody(tmp_path: Path):
    asked = inquiry(implementations=(EAGER, SDPA), contexts=(1536,))
    disturbed = {"hf:eager": {"speed": 600.0, "contended_blocks": 8}}
    folder = measured(tmp_path, asked, LENGTHS, changes=disturbed)
    against = decide(asked, rows_of(asked, folder), "prefill", 1536).choices[1].against
    assert against is not None
    assert against.verdict == "undecided"
    assert "contended" in against.reasons


def test_a_measured_time_beside_a_fitted_one_includes_what_processes_differ_by(tmp_path: Path):
    """A quick run of one process: its own interval is a few percent, processes differ by 30 %."""
    asked = inquiry(implementations=(EAGER, SDPA), contexts=(1024,))
    several = {"hf:sdpa": {"speed": 1.0}, "hf:eager": {"speed": 1.25}}
    folder = measured(tmp_path, asked, (*LENGTHS[:3], *LENGTHS[4:], 4096), several)
    beside = measured(tmp_path / "b", asked, (1024,), implementations=(SDPA,))
    (beside / "rows.jsonl").write_text(
        (folder / "rows.jsonl").read_text() + (beside / "rows.jsonl").read_text()
    )
    meta = json.loads((beside / "run.json").read_text())
    meta["cases"] = [*json.loads((folder / "run.json").read_text())["cases"], *meta["cases"]]
    (beside / "run.json").write_text(json.dumps(meta))
    against = decide(asked, rows_of(asked, beside), "prefill", 1024).choices[1].against
    assert against is not None
    assert against.verdict == "undecided"
    assert math.log(against.high / against.low) > 2 * math.log(1.2)


def test_over_several_kinds_of_layers_the_noise_of_the_machine_raises_the_margin_as_over_one(
    tmp_path: Path,
):
    asked = inquiry(implementations=(EAGER, SDPA))
    changes = {"hf:eager": {"speed": 1.5}}
    folder = measured(tmp_path, asked, changes=changes)
    margins = []
    for noise in (0.0, 0.1):
        checks(folder.parent, paired_noise_ratio=noise, run_noise_ratio=0.01)
        against = decide(asked, rows_of(asked, folder), "prefill", 1024).choices[1].against
        assert against is not None
        margins.append(against.margin_ratio)
        (folder.parent / "selfcheck.jsonl").unlink()
    assert margins == [0.03, 0.2]


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
