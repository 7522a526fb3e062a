"""reports/sections/utilization.py: headlines, other readings, kernels, and reasons for missing values."""

from pathlib import Path
from typing import Any

from attnbench.reports.elements import Block, Table, Text
from attnbench.reports.sections import utilization as section
from tests.reports.fake_runs import case, problem, row, write_run
from tests.reports.rendering import blocks_of, page_of

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


def blocks(run: Path) -> list[Block]:
    return blocks_of(section, run)


def test_the_section_says_who_keeps_the_gpu_at_work_and_what_a_call_costs(tmp_path):
    found = blocks(watched(tmp_path))
    said = [block.text for block in found if isinstance(block, Text)]
    assert any("sdpa keeps the SMs active for 90% of the time, naive 20%" in text for text in said)
    assert any("a call of naive takes 1.5 times the energy of one of sdpa" in text for text in said)
    assert any("hmma_ratio (GPM metric 7: this GPU does not offer it)" in text for text in said)
    (table,) = [block for block in found if isinstance(block, Table)]
    assert table.columns[:3] == ("backend", "SMs active", "kernels run")
    assert table.rows[0][:3] == ("naive", "20.0 ± 3.00 %", "100 ± 0 %")
    assert "900 ± 0 mJ" in table.rows[0]


def test_graph_windows_have_a_table_of_their_own(tmp_path):
    windows = [window("fused"), window("fused", way="graph", sm_active_ratio=0.95)]
    tables = [
        block for block in blocks(watched(tmp_path, windows=windows)) if isinstance(block, Table)
    ]
    assert [("graph" in table.title) for table in tables] == [False, True]
    assert "95.0 %" in tables[1].rows[0]


def test_a_run_that_was_not_watched_says_how_to_watch(tmp_path):
    (only,) = blocks(
        write_run(tmp_path, [case("fused", problem(64))], [row(case("fused", problem(64)))])
    )
    assert isinstance(only, Text)
    assert "measure: [latency, memory, utilization, energy]" in only.text


def test_the_page_holds_the_section(tmp_path):
    assert "sdpa keeps the SMs active for 90% of the time" in page_of(watched(tmp_path))
