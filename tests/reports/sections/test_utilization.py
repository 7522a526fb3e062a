"""reports/sections/utilization.py: headlines, all other readings, kernels, missing values."""

import re
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.elements import Block, Table
from attnbench.reports.sections import utilization as section
from tests.reports.analysis.test_utilization import kernel, kernel_tables, with_utilization
from tests.reports.pages.test_hostile import HOSTILE
from tests.reports.rendering import (
    blocks_of,
    markdown_of,
    page_of,
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
