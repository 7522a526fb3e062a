"""reports/subjects/trust.py: neither a lack of information nor a disturbance is ever good."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.row_groups import Row
from attnbench.reports.pages.report import open_report
from attnbench.reports.pages.terminal import render_briefly
from attnbench.reports.subjects import trust
from attnbench.reports.subjects.trust import Check, checks
from tests.made_runs import case, grid, problem, row, write_run
from tests.reports.rendering import rows_and_meta

META: dict[str, Any] = {"r": {"scenario": {"plan": {"precision_ratio": 0.05}}}}
QUIET = {
    "run": "r",
    "status": "ok",
    "latency_ms": 1.0,
    "blocks": 8,
    "contended_blocks": 0,
    "throttled_blocks": 0,
    "warmup_stationary": True,
    "stop": "ci",
    "half_width_ratio": 0.04,
    "pair_half_width_ratio": 0.03,
    "launch_bound": None,
}


def timed(seq_len: int = 128, backend: str = "fused", **changes: Any) -> Row:
    return case(backend, problem(seq_len)) | QUIET | changes


def made(
    folder: Path, *changes: dict[str, Any], status: str = "ok", **meta: Any
) -> dict[str, Check]:
    cases = [case("fused", problem(128 << place)) for place in range(len(changes))]
    rows = [row(one, status, **change) for one, change in zip(cases, changes, strict=True)]
    plan = {"plan": {"precision_ratio": 0.05}}
    run = write_run(folder, cases, rows, scenario=plan, **meta)
    return by_name(*rows_and_meta(run))


def by_name(rows: list[Row], meta: Any) -> dict[str, Check]:
    return {name: one for of in checks(rows, meta).values() for name, one in of.items()}


def on_gpu(*clocks: float) -> dict[str, Any]:
    return {
        "device": "cuda",
        "conditions": [[{"calls": 3, "sm_clock_mhz": clock} for clock in clocks]],
    }


@pytest.mark.parametrize(
    ("label", "change", "state"),
    [
        ("contention", {"contended_blocks": 3}, "caution"),
        ("contention", {"contended_blocks": None}, "unknown"),
        ("throttling", {"throttled_blocks": 8}, "caution"),
        ("warm-up", {"warmup_stationary": False}, "caution"),
        ("warm-up", {"warmup_stationary": None}, "unknown"),
        ("precision", {"stop": "budget", "half_width_ratio": 0.2}, "good"),
        ("precision", {"stop": None}, "unknown"),
        ("correctness", {"error_ratio": None}, "unknown"),
    ],
)
def test_one_disturbed_case_changes_the_badge(
    tmp_path: Path, label: str, change: dict[str, Any], state: str
) -> None:
    assert made(tmp_path, change, {})[label].state == state


@pytest.mark.parametrize(("threads", "advised"), [(2, True), (1, False)])
def test_where_other_work_disturbed_several_threads_one_is_advised(
    tmp_path: Path, threads: int, advised: bool
) -> None:
    found = made(tmp_path, {"contended_blocks": 5}, environment={"threads": threads})
    assert "mostly: measure again" in found["contention"].more
    assert ("--threads 1" in found["contention"].more) is advised


@pytest.mark.parametrize(
    ("last", "again"),
    [
        ({"clock_event_reasons": 0x4}, False),
        ({"power_throttled_s": 0.1}, False),
        ({"clock_event_reasons": 0x4 | 0x40}, True),
        ({"clock_event_reasons": 0x8}, True),
        ({"thermal_throttled_s": 0.1}, True),
        ({"throttled_s": 0.1}, True),
    ],
)
def test_a_power_limit_is_met_again_and_heat_may_not_be(
    tmp_path: Path, last: dict[str, Any], again: bool
) -> None:
    conditions = [[{"calls": 3, **one} for one in ({}, {"clock_event_reasons": 0x4}, last)]]
    changes = {"throttled_blocks": 5, "conditions": conditions}
    found = made(tmp_path, {"device": "cuda", **changes})["throttling"]
    assert found.state == "caution"
    assert ("measure again" in found.more) is again
    assert ("power limit" in found.text) is not again


def test_a_clock_that_moves_is_a_caution(tmp_path: Path) -> None:
    assert made(tmp_path / "steady", on_gpu(1695, 1710))["clocks"].state == "good"
    assert made(tmp_path / "moved", on_gpu(1200, 1710))["clocks"].state == "caution"


@pytest.mark.parametrize(("count", "state"), [(0, "good"), (2, "caution"), (None, "unknown")])
def test_other_processes_are_unknown_where_nobody_counted_them(
    tmp_path: Path, count: int | None, state: str
) -> None:
    window = {"way": "eager", "window_s": 1.0, "calls": 9, "other_process_count": count}
    found = made(tmp_path, {"device": "cuda", "windows": [window]})
    assert found["other processes"].state == state


def test_a_wrong_result_is_a_caution_and_a_run_without_times_is_unknown(tmp_path: Path) -> None:
    found = made(tmp_path, {}, status="incorrect")
    assert found["correctness"].state == "caution"
    known = ("correctness", "cases")
    assert {badge.state for label, badge in found.items() if label not in known} == {"unknown"}


@pytest.mark.parametrize(
    ("name", "flags", "state"),
    [
        ("unseen work", {"unseen_work": True}, "caution"),
        ("unseen work", {}, "unknown"),
        ("late calls", {"late_calls": 7}, "caution"),
        ("late calls", {"late_calls": 7, "block_ms": [[[1.0] * 99] * 2]}, "good"),
        ("CUDA graphs", {"graph_failed": True}, "caution"),
    ],
)
def test_the_timing_of_a_gpu_is_good_only_if_the_row_says_so(
    tmp_path: Path, name: str, flags: dict[str, Any], state: str
) -> None:
    assert made(tmp_path, {"device": "cuda", **flags})[name].state == state


def test_more_flops_than_calibration_measured_is_called_impossible(tmp_path: Path) -> None:
    peaks = {"gemm_fp32_flops_per_s": 1e12, "copy_bytes_per_s": 1e11}
    for ratio, calibration, state in ((0.9, peaks, "good"), (2, None, ""), (2, peaks, "caution")):
        case = {"work_flops": int(ratio * 1e9), "minimal_bytes": 10**6, "block_ms": [[[1.0]] * 8]}
        folder = tmp_path / f"{ratio} {calibration is None}"
        found = made(folder, case, calibration=calibration and {"peaks": calibration})
        assert (found["peak"].state if "peak" in found else "") == state


@pytest.mark.parametrize(
    ("variables", "latency_ms", "state"),
    [
        ({"OMP_NUM_THREADS": "1", "TRITON_INTERPRET": "0"}, 1.0, ""),
        ({"TRITON_INTERPRET": "1"}, 1.0, "caution"),
        ({"TRITON_INTERPRET": "1"}, None, ""),
    ],
)
def test_kernels_that_were_interpreted_have_no_speed(
    variables: dict[str, str], latency_ms: float | None, state: str
) -> None:
    meta = {"r": META["r"] | {"environment": {"allocator": variables}}}
    found = by_name([timed(latency_ms=latency_ms)], meta).get("interpreter")
    assert (found.state if found else "") == state
    assert not found or "TRITON_INTERPRET=1" in found.text


def test_a_line_says_one_thing_and_names_the_others_which_stand_behind_it(tmp_path: Path) -> None:
    found = {"contended_blocks": 3, "throttled_blocks": 8, "warmup_stationary": False}
    cases = [case("fused", problem(128))]
    report = open_report([write_run(tmp_path, cases, [row(cases[0], **found)])])
    lines = {one.label: one.text for one in report.trust}
    assert lines["Undisturbed"].endswith("of 8 blocks. Also: contention.")
    (part,) = next(one for one in report.sections if one.name == "trust").parts
    every = [(block.kind, block.text.partition(": ")) for block in part.blocks]
    assert [item for kind, (item, *_) in every if kind == "caution"] == [
        *("Undisturbed", "Undisturbed", "Repeated", "Repeated")
    ]
    assert any("the same cores" in text for _, (*_, text) in every)
    briefly = " ".join(map(str, render_briefly(report)))
    assert "Undisturbed" in briefly
    assert "the same cores" not in briefly


@pytest.mark.parametrize(
    ("status", "state"),
    [("error", "caution"), ("incorrect", "caution"), ("oom", "good"), ("unsupported", "good")],
)
def test_no_tick_stands_over_what_failed(tmp_path: Path, status: str, state: str) -> None:
    cases = grid(("naive", "fused"), (512,))
    rows = [row(cases[0]), row(cases[1], status)]
    badges = trust.trust(*rows_and_meta(write_run(tmp_path, cases, rows)))
    (complete,) = (one for one in badges if one.label == "Complete")
    assert complete.state == state
