"""reports/subjects/_trust.py: one sentence per kind of problem, and only where it occurred."""

from typing import Any

import pytest

from attnbench.reports.data.row_groups import Row
from attnbench.reports.subjects import _trust as trust
from tests.made_runs import case, problem

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


def test_a_quiet_run_and_a_run_without_this_information_need_no_caution() -> None:
    assert trust.cautions([timed(), timed(256)], META) == []
    old = dict.fromkeys(
        ("contended_blocks", "throttled_blocks", "warmup_stationary", "pair_half_width_ratio")
    )
    assert (
        trust.cautions([timed(**old), timed(256, latency_ms=None, contended_blocks=8)], META) == []
    )
    assert trust.warnings([timed(**old)]) == []
    assert trust.cautions([], META) == []


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


def test_more_flops_than_calibration_measured_is_called_impossible() -> None:
    def rows(ratio: float) -> list[Row]:
        work = {"work_flops": 10**9, "minimal_bytes": 10**6, "dtype": "fp32"}
        return [timed(**work, latency_ms=1 / ratio, achieved_flops_per_s=ratio * 1e12)]

    peaks = {"gemm_fp32_flops_per_s": 1e12, "copy_bytes_per_s": 1e11}
    meta = {"r": {**META["r"], "calibration": {"peaks": peaks}}}
    assert trust.cautions(rows(0.99), meta) == []
    assert trust.cautions(rows(2.0), META) == []
    (found,) = trust.cautions(rows(2.0), meta)
    assert "which is impossible: fused" in found
    assert "calibrate again" in found


def test_kernels_that_were_interpreted_have_no_speed() -> None:
    def meta(**variables: str) -> dict[str, Any]:
        return {"r": META["r"] | {"environment": {"allocator": variables}}}

    assert trust.interpreted([timed()], meta(OMP_NUM_THREADS="1", TRITON_INTERPRET="0")) == []
    (found,) = trust.interpreted([timed()], meta(TRITON_INTERPRET="1"))
    assert found.startswith(
        "TRITON_INTERPRET=1 was set: Triton kernels ran in Python's interpreter"
    )
    assert trust.interpreted([timed(latency_ms=None)], meta(TRITON_INTERPRET="1")) == []
