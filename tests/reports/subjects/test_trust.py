"""reports/subjects/trust.py: neither a lack of information nor a disturbance is ever good."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.row_groups import Row
from attnbench.reports.elements import Badge
from attnbench.reports.subjects import trust
from attnbench.reports.subjects.trust import checks
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
) -> dict[str, Badge]:
    cases = [case("fused", problem(128 << place)) for place in range(len(changes))]
    rows = [row(one, status, **change) for one, change in zip(cases, changes, strict=True)]
    plan = {"plan": {"precision_ratio": 0.05}}
    run = write_run(folder, cases, rows, scenario=plan, **meta)
    found = checks(*rows_and_meta(run))
    return {
        label: Badge(label=label, state=state, text=text) for label, (state, text) in found.items()
    }


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


@pytest.mark.parametrize(
    ("field", "threads", "advised"),
    [
        ("contended_blocks", 2, True),
        ("contended_blocks", 1, False),
        ("contended_blocks", None, False),
        ("throttled_blocks", 2, False),
    ],
)
def test_where_other_work_disturbed_several_threads_one_is_advised(
    tmp_path: Path, field: str, threads: int | None, advised: bool
) -> None:
    found = made(tmp_path, {field: 5}, environment={"threads": threads})
    text = found[trust.DISTURBANCES[field][0]].text
    assert "more than half of the blocks: measure again" in text
    assert ("--threads 1" in text) is advised


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
    badge = made(tmp_path, {"device": "cuda", **changes})["throttling"]
    assert badge.state == "caution"
    assert ("measure again" in badge.text) is again
    assert ("power limit" in badge.text) is not again


def test_a_clock_that_moves_is_a_caution(tmp_path: Path) -> None:
    assert made(tmp_path / "steady", on_gpu(1695, 1710))["clocks"].state == "good"
    assert made(tmp_path / "moved", on_gpu(1200, 1710))["clocks"].state == "caution"


@pytest.mark.parametrize(("count", "state"), [(0, "good"), (2, "caution"), (None, "unknown")])
def test_other_processes_are_unknown_where_nobody_counted_them(
    tmp_path: Path, count: int | None, state: str
) -> None:
    window = {"way": "eager", "window_s": 1.0, "calls": 9, "other_process_count": count}
    assert made(tmp_path, {"windows": [window]})["other processes"].state == state


def test_a_wrong_result_is_a_caution_and_a_run_without_times_is_unknown(tmp_path: Path) -> None:
    found = made(tmp_path, {}, status="incorrect")
    assert found["correctness"].state == "caution"
    assert {badge.state for label, badge in found.items() if label != "correctness"} == {"unknown"}


AGREES = {"unseen_work": False, "late_calls": 0, "graph_failed": False}


@pytest.mark.parametrize(
    ("flags", "state"),
    [
        (AGREES, "good"),
        ({"unseen_work": True, "late_calls": 0}, "caution"),
        ({"late_calls": 7}, "caution"),
        ({**AGREES, "late_calls": 7, "block_ms": [[[1.0] * 99] * 2]}, "good"),
        ({"graph_failed": True}, "caution"),
        ({"unseen_work": None}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_gpu_timing_is_good_only_if_every_flag_says_so(
    tmp_path: Path, flags: dict[str, Any], state: str
) -> None:
    assert made(tmp_path, {"device": "cuda", **flags})["GPU timing"].state == state


def test_more_flops_than_calibration_measured_is_called_impossible(tmp_path: Path) -> None:
    peaks = {"gemm_fp32_flops_per_s": 1e12, "copy_bytes_per_s": 1e11}
    for ratio, calibration, is_named in ((0.9, peaks, False), (2, None, False), (2, peaks, True)):
        case = {"work_flops": int(ratio * 1e9), "minimal_bytes": 10**6, "block_ms": [[[1.0]] * 8]}
        folder = tmp_path / f"{ratio} {calibration is None}"
        found = made(folder, case, calibration=calibration and {"peaks": calibration})
        assert (found["peak"].state if "peak" in found else "") == ("caution" if is_named else "")


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({"stop": "ci", "half_width_ratio": 0.2}, False),
        ({"stop": "budget"}, False),
        ({"stop": "budget", "half_width_ratio": None, "pair_half_width_ratio": None}, True),
        ({"stop": "blocks", "pair_half_width_ratio": None}, False),
        ({"stop": "blocks", "pair_half_width_ratio": 0.06}, True),
        ({"stop": None}, False),
    ],
)
def test_precision_is_missed_where_sampling_ended_before_it_was_reached(
    changes: dict[str, Any], missed: bool
) -> None:
    assert trust.missed(timed(**changes), 0.05) is missed


def test_without_a_known_target_what_was_cut_short_counts_as_missed() -> None:
    assert trust.missed(timed(stop="budget"), None)
    for plan in (None, {}, [], {"precision_ratio": "0.05"}, {"precision_ratio": True}):
        assert trust.precision_ratio({"scenario": {"plan": plan}}) is None


def test_kernels_that_were_interpreted_have_no_speed() -> None:
    def meta(**variables: str) -> dict[str, Any]:
        return {"r": META["r"] | {"environment": {"allocator": variables}}}

    assert trust._interpreted([timed()], meta(OMP_NUM_THREADS="1", TRITON_INTERPRET="0")) == []
    (found,) = trust._interpreted([timed()], meta(TRITON_INTERPRET="1"))
    assert "TRITON_INTERPRET=1" in found
    assert trust._interpreted([timed(latency_ms=None)], meta(TRITON_INTERPRET="1")) == []


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
