"""What the windows of a row come to, in the frame, in sentences and on the page; and rows whose
windows are no windows.
"""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.analysis import utilization
from attnbench.reports.data.load import load
from attnbench.reports.data.read import BadRun, read_run
from attnbench.reports.elements import Block, Table, Text
from tests.reports.rendering import blocks_of, page_of
from attnbench.reports.sections import utilization as section

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


def blocks(run: Path) -> list[Block]:
    return blocks_of(section, run)


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


def test_backends_that_keep_it_equally_busy_are_not_ranked(tmp_path):
    rows = [{**one, "windows": [window("fused")] * 3} for one in read_run(watched(tmp_path)).rows]
    assert utilization.finding(rows) == (
        "all keep the SMs active for 80% of the time; a call takes 0.8 J or little more with each"
    )


def test_rows_of_different_tiers_are_not_compared(tmp_path):
    rows = read_run(watched(tmp_path)).rows
    rows[0]["utilization_tier"] = "busy"
    assert "SMs" not in utilization.finding(rows)


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


BROKEN = [
    ({"windows": [3]}, "windows[0]: wanted an object"),
    ({"windows": [{**WORN, "calls": "9"}]}, "windows[0]: calls: found '9', wanted int"),
    ({"windows": [{**WORN, "window_s": 0}]}, "windows[0]: wanted numbers"),
    ({"windows": [{**WORN, "x_ratio": [1]}]}, "windows[0]: wanted numbers"),
    ({"windows": [{"way": "eager"}]}, "windows[0]: window_s: found nothing, wanted int or float"),
    ({"missing": {"x": 3}}, "missing: wanted a reason in words"),
    ({"tables": [3]}, "tables: found [3], wanted dict"),
]


@pytest.mark.parametrize(("changes", "message"), BROKEN)
def test_broken_windows_are_named(tmp_path, changes, message):
    with pytest.raises(BadRun, match=r"rows\.jsonl:1: ") as refusal:
        read_run(watched(tmp_path, **changes))
    assert message in str(refusal.value)
