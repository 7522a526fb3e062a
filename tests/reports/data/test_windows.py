"""Windows of a row: their means in the table, and refusal of broken ones."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.load import load
from attnbench.reports.data.read import BadRun, read_run
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


BROKEN = [
    ({"windows": [3]}, "windows[0]: wanted an object"),
    ({"windows": [{**WORN, "calls": "9"}]}, "windows[0]: calls: found '9', wanted int"),
    ({"windows": [{**WORN, "window_s": 0}]}, "windows[0]: wanted numbers"),
    ({"windows": [{**WORN, "x_ratio": [1]}]}, "windows[0]: wanted numbers"),
    ({"windows": [{"way": "eager"}]}, "windows[0]: window_s: found nothing, wanted int or float"),
    ({"missing": {"x": 3}}, "missing: wanted a reason in words"),
    ({"tables": [3]}, "tables: found [3], wanted dict"),
]


def test_the_frame_has_means_over_windows_and_the_energy_of_a_call_and_a_token(tmp_path):
    frame = load(watched(tmp_path)).set_index("backend")
    assert frame.loc["naive", "utilization_tier"] == "gpm"
    assert frame.loc["naive", "sm_active_ratio"] == pytest.approx(0.2)
    assert frame.loc["naive", "energy_per_call_j"] == pytest.approx(0.9)
    assert frame.loc["naive", "energy_per_token_j"] == pytest.approx(0.9 / 1024)
    assert frame.loc["naive", "hmma_ratio"] != frame.loc["naive", "hmma_ratio"]  # NaN, and not 0
    assert "calls" not in frame.columns


def test_rows_without_windows_have_no_utilization(tmp_path):
    frame = load(
        write_run(tmp_path, [case("fused", problem(64))], [row(case("fused", problem(64)))])
    )
    assert frame["utilization_tier"].isna().all()
    assert frame["energy_per_call_j"].isna().all()


@pytest.mark.parametrize(("changes", "message"), BROKEN)
def test_broken_windows_are_named(tmp_path, changes, message):
    with pytest.raises(BadRun, match=r"rows\.jsonl:1: ") as refusal:
        read_run(watched(tmp_path, **changes))
    assert message in str(refusal.value)
