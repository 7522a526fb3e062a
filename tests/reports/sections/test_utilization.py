"""reports/sections/utilization.py: headlines, all other readings, kernels, missing values."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from attnbench.reports.elements import Block, Table
from attnbench.reports.pages import terminal
from attnbench.reports.pages.report import open_report
from attnbench.reports.sections import _probe_tables
from attnbench.reports.sections import utilization as section
from tests.reports.fake_runs import case, problem, row, write_run
from tests.reports.fake_windows import kernel, kernel_tables, window, with_utilization
from tests.reports.pages.test_hostile import HOSTILE
from tests.reports.rendering import (
    blocks_of,
    markdown_of,
    page_of,
    section_of,
    sentences,
    tables_of,
    text_of,
)

READINGS = "All other readings"


def table(blocks: list[Block], start: str) -> Table:
    (found,) = (one for one in tables_of(blocks) if one.title.startswith(start))
    return found


def test_no_share_of_the_device_above_1_stands_without_being_called_impossible(
    tmp_path: Path,
) -> None:
    beyond = {"sm_active_ratio": 1.3, "hmma_ratio": 1.2, "host_cpu_ratio": 1.5}
    page = text_of(page_of(with_utilization(tmp_path, of_windows=beyond))).replace("\u00a0", " ")
    found = re.findall(r"\b(1[2-9]\d)\s?%([^%]{0,60})", page)
    assert found
    assert all("impossible" in after for _, after in found), found


def test_the_section_says_who_keeps_the_gpu_at_work_and_what_a_call_costs(tmp_path: Path) -> None:
    found = blocks_of(section, with_utilization(tmp_path))
    text = " ".join(sentences(found))
    assert "sdpa keeps the SMs active for 90 % of the time, naive 20 %" in text
    assert "a call of naive takes 1.5 times the energy of one of sdpa" in text
    assert "hmma_ratio (GPM metric 7: this GPU does not offer it)" in text
    (headlines,) = tables_of(found)
    assert headlines.columns[:3] == ("backend", "SMs active", "kernels run")
    assert headlines.rows[0][:3] == ("naive", "20.0 ± 3.00 %", "100 ± 0 %")
    assert "900 ± 0 mJ" in headlines.rows[0]


def test_graph_windows_have_a_table_of_their_own(tmp_path: Path) -> None:
    windows = [window("fused"), window("fused", way="graph", sm_active_ratio=0.95)]
    tables = tables_of(blocks_of(section, with_utilization(tmp_path, windows=windows)))
    assert [("graph" in table.title) for table in tables] == [False, True]
    assert "95.0 %" in tables[1].rows[0]


def test_a_run_without_windows_says_how_to_request_them(tmp_path: Path) -> None:
    planned = case("fused", problem(64))
    text, *rest = sentences(blocks_of(section, write_run(tmp_path, [planned], [row(planned)])))
    assert "measure: [latency, memory, utilization, energy]" in text
    assert rest == []


def test_a_column_that_reports_do_not_know_is_a_folded_line(tmp_path: Path) -> None:
    run = with_utilization(tmp_path, of_windows={"fan_speed_ratio": 0.25, "link_mask": 5})
    found = table(blocks_of(section, run), READINGS)
    assert found.folded
    assert found.columns == ("backend", "reading", "mean", "lowest to highest", "windows")
    assert found.rows[:2] == (
        ("naive", "fan speed", "25.0 % ± 0 %", "25.0 %", "3"),
        ("naive", "link mask", "", "0x5", "3"),
    )
    assert len(found.rows) == 6


def test_readings_say_how_calls_were_launched_and_on_which_problem(tmp_path: Path) -> None:
    cases = [case("fused", problem(n, device="cuda")) for n in (512, 1024)]
    windows = [window("fused", way=way, fan_count=3) for way in ("eager", "graph")]
    rows = [row(one, windows=windows, utilization_tier="gpm") for one in cases]
    found = table(blocks_of(section, write_run(tmp_path, cases, rows)), READINGS)
    assert found.columns[:4] == ("problem", "backend", "launched", "reading")
    assert [line[:3] for line in found.rows] == [
        (f"N\u00a0=\u00a0{n}", "fused", way) for n in ("512", "1k") for way in ("eager", "graph")
    ]


def test_many_missing_readings_are_all_in_a_folded_table(tmp_path: Path) -> None:
    missing = {f"gauge_{number}_ratio": "no GPU" for number in range(8)}
    found = blocks_of(section, with_utilization(tmp_path, missing=missing))
    assert "4 more (no GPU)" in " ".join(sentences(found))
    listed = table(found, "All readings that are missing")
    assert listed.folded
    assert listed.rows[7] == ("gauge 7", "gauge_7_ratio", "no GPU")


def test_kernels_of_a_case_are_a_folded_table_without_windows_too(tmp_path: Path) -> None:
    entries = (
        kernel("gemm", 10, 3.0, [64, 8, 1]),
        kernel("softmax", 5, 1.0, [8, 1, 1], occupancy_ratio=None),
    )
    run = with_utilization(tmp_path, windows=None, tables=kernel_tables(*entries))
    blocks = blocks_of(section, run)
    assert any("torch.profiler in calls of their own" in text for text in sentences(blocks))
    kernels = [one for one in tables_of(blocks) if one.title.startswith("Kernels of")]
    assert len(kernels) == 3
    first = kernels[0]
    assert first.folded
    assert first.title == (
        "Kernels of naive at N\u00a0=\u00a01k: 3 launches per call; 75.0 % of the time in gemm"
    )
    assert first.columns == (
        "kernel",
        "launches per call",
        "time per call",
        "share of time",
        "grid",
        "block",
        "thread register count",
        "block shared",
        "occupancy",
    )
    assert first.rows == (
        ("gemm", "2", "600 μs", "75.0 %", "64 × 8 × 1", "256 × 1 × 1", "128", "48 KiB", "25.0 %"),
        ("softmax", "1", "200 μs", "25.0 %", "8 × 1 × 1", "256 × 1 × 1", "128", "48 KiB", ""),
    )


def test_of_many_kernels_the_first_are_listed_and_the_rest_is_summed_up(tmp_path: Path) -> None:
    entries = [kernel(f"k{number}", 5, 1.0) for number in range(40)]
    run = with_utilization(tmp_path, tables=kernel_tables(*entries))
    found = tables_of(blocks_of(section, run))[-1]
    assert len(found.rows) == _probe_tables.MOST_KERNELS + 1
    assert found.columns == _probe_tables.COLUMNS  # no shapes on a CPU
    assert found.rows[-1] == ("30 other entries", "30", "6.00 ms", "75.0 %")


def test_of_many_tables_the_first_are_shown_and_the_others_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_probe_tables, "MOST_TABLES", 2)
    run = with_utilization(tmp_path, tables=kernel_tables(kernel("gemm", 5, 1.0)))
    blocks = blocks_of(section, run)
    assert len([one for one in tables_of(blocks) if one.title.startswith("Kernels of")]) == 2
    assert sentences(blocks)[-1] == "1 more table in rows.jsonl, under tables."


def test_a_table_of_a_probe_that_reports_do_not_know_has_its_keys_as_columns(
    tmp_path: Path,
) -> None:
    entries: list[dict[str, Any]] = [{"hop": "a", "moved_bytes": 2048}]
    entries += [{"hop": "b", "busy_ratio": 0.5, "spent_ms": 3.0, "lanes": [1, 2], "up": True}]
    run = with_utilization(tmp_path, tables={"hop_table": entries})
    found = table(blocks_of(section, run), "Hop table of naive")
    assert found.folded
    assert found.columns == ("hop", "moved", "busy", "spent", "lanes", "up")
    assert found.rows == (
        ("a", "2 KiB", "", "", "", ""),
        ("b", "", "50.0 %", "3.00 ms", "1 × 2", "yes"),
    )


def test_a_long_table_of_an_unknown_probe_is_cut(tmp_path: Path) -> None:
    entries = [{"hop": number} for number in range(50)]
    run = with_utilization(tmp_path, tables={"hop_table": entries})
    found = table(blocks_of(section, run), "Hop table of naive")
    assert found.title.endswith("; 10 more entries in rows.jsonl")
    assert len(found.rows) == _probe_tables.MOST_ENTRIES


def test_page_markdown_and_terminal_show_unknown_columns_and_kernels(tmp_path: Path) -> None:
    tables = kernel_tables(kernel("my_gemm", 5, 1.0), hop_table=[{"hop": "north"}])
    run = with_utilization(tmp_path, of_windows={"fan_speed_ratio": 0.25}, tables=tables)
    out = StringIO()
    console = Console(file=out, width=250, highlight=False)
    for part in terminal.render(open_report([run]), ("utilization",)):
        console.print(part)
    page = text_of(section_of(page_of(run), "utilization"))
    for text in (page, out.getvalue()):
        for wanted in ("90 % of the time", "fan speed", "gemm", "north"):
            assert wanted in text
    assert "90 % of the time" in markdown_of(run)
    assert "torch.profiler" in page


@pytest.mark.parametrize(
    "changes",
    [
        {"windows": []},
        {"tables": {"kernel_table": [{"name": HOSTILE, "time_ms": 1.0}]}},
        {"tables": {HOSTILE: [{HOSTILE: HOSTILE}]}, "missing": {HOSTILE: HOSTILE}},
        {"of_windows": {HOSTILE: 3, "fan_ratio": 1e300}},
    ],
)
def test_hostile_names_and_odd_values_do_not_break_the_section(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    run = with_utilization(tmp_path, **changes)
    page = page_of(run)
    assert "<img" not in page
    assert "<img" not in markdown_of(run)
    assert not text_of(page).count("NaN")
