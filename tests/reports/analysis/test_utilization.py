"""reports/analysis/utilization.py: values per quantity with intervals over windows."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.analysis import utilization
from attnbench.reports.data.read import read_run
from tests.reports.fake_runs import case, problem, row, write_run

ACTIVE = {"naive": 0.2, "fused": 0.8, "sdpa": 0.9}


ENERGY_J = {"naive": 900.0, "fused": 800.0, "sdpa": 600.0}


WORN = {"way": "eager", "process": 0, "window_s": 2.0, "calls": 1000}


def window(backend: str, shift: float = 0.0, **changes: Any) -> dict[str, Any]:
    counters = {
        "sm_active_ratio": ACTIVE[backend] + shift,
        "energy_j": ENERGY_J[backend],
        "power_w": 300.0,
        "kernel_busy_ratio": 1.0,
    }
    return {**WORN, **counters, "hmma_ratio": None, "sm_clock_mhz": 1755, **changes}


def watched(parent: Path, **changes: Any) -> Path:
    """A run of three backends with three windows each on a GPU."""
    planned = [case(backend, problem(1024, device="cuda")) for backend in ACTIVE]
    seen = {
        "utilization_tier": "gpm",
        "missing": {"hmma_ratio": "GPM metric 7: this GPU does not offer it"},
        "tables": None,
    }
    rows = []
    for one in planned:
        windows = [window(one["backend"], shift) for shift in (-0.01, 0.0, 0.01)]
        rows.append(row(one, **{**seen, "windows": windows, **changes}))
    return write_run(parent, planned, rows, device="cuda")


def test_intervals_are_over_windows_and_one_window_has_none(tmp_path):
    (first, *_) = read_run(watched(tmp_path)).rows
    three = utilization.seen(first, "sm_active")
    assert three is not None
    assert three.low < 0.2 < three.high
    assert utilization.half_width(three) == pytest.approx(
        5.17 * 0.01 / 3**0.5, rel=0.01
    )  # t of 96.5 % and two degrees of freedom
    one = utilization.seen({**first, "windows": first["windows"][:1]}, "sm_active")
    assert one is not None
    assert not utilization.exact(one)
    assert one.reason == "1 window: no interval"
    assert utilization.seen(first, "temperature") is None


def test_backends_that_keep_it_equally_busy_are_not_ranked(tmp_path):
    rows = [{**one, "windows": [window("fused")] * 3} for one in read_run(watched(tmp_path)).rows]
    assert utilization.finding(rows) == (
        "all keep the SMs active for 80% of the time; a call takes 0.8 J or little more with each"
    )


def test_rows_of_different_tiers_are_not_compared(tmp_path):
    rows = read_run(watched(tmp_path)).rows
    rows[0]["utilization_tier"] = "busy"
    assert "SMs" not in utilization.finding(rows)
