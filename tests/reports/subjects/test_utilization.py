"""reports/subjects/utilization.py: headlines, all other readings, kernels, missing values."""

import re
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.run_meta import read_run
from attnbench.reports.elements import Bars, Block, Table
from attnbench.reports.subjects import utilization
from tests.made_runs import WINDOW, with_windows
from tests.reports.rendering import blocks_of, card_of, page_of, tables_of, text_of

ACTIVE = {"naive": 0.2, "fused": 0.8, "sdpa": 0.9}
ENERGY_J = {"naive": 900.0, "fused": 800.0, "sdpa": 600.0}


def window(backend: str, shift: float = 0.0, **changes: Any) -> dict[str, Any]:
    """2 s with 1000 calls; `hmma_ratio` is missing."""
    counters = {"sm_active_ratio": ACTIVE[backend] + shift, "kernel_busy_ratio": 1.0}
    power = {"energy_j": ENERGY_J[backend], "power_w": 300.0, "sm_clock_mhz": 1755}
    return WINDOW | {"hmma_ratio": None} | counters | power | changes


def with_utilization(parent: Path, shifts: tuple[float, ...] = (-0.01, 0.0, 0.01), **changes: Any):
    """A run of three backends on a GPU, with a window for each shift of `sm_active_ratio`.

    `changes` are of each row; those of each window are in `of_windows`.
    """
    of_windows = changes.pop("of_windows", {})
    windows = {name: [window(name, shift, **of_windows) for shift in shifts] for name in ACTIVE}
    missing = {"hmma_ratio": "GPM metric 7: this GPU does not offer it"}
    return with_windows(parent, windows, **{"missing": missing} | changes)


def readings(tmp_path: Path, **changes: Any) -> dict[str, list[str]]:
    """Of the first backend, by title, a mean for each way of launching."""
    found = table(blocks_of(utilization, with_utilization(tmp_path, **changes)), "All readings")
    found = found if found.columns[0] == "case" else found.turned
    mine = [line[1:] for line in found.texts if line[0].startswith("naive")]
    return dict(zip(found.columns[1:], map(list, zip(*mine, strict=True)), strict=True))


def test_rows_of_different_tiers_are_not_compared(tmp_path: Path) -> None:
    rows = read_run(with_utilization(tmp_path)).rows
    rows[0]["utilization_tier"] = "busy"
    assert "SMs" not in utilization.busiest(rows)


@pytest.mark.parametrize(
    ("column", "value", "title", "text"),
    [
        ("dram_read_ratio", 0.125, "DRAM read", "12.5 %"),
        ("probe_ms", 2.0, "probe", "2.00 ms"),
        ("host_busy_cores", 1.5, "host busy cores", "1.50"),
    ],
)
def test_a_column_of_any_probe_has_its_unit_from_its_name(
    tmp_path: Path, column: str, value: float, title: str, text: str
) -> None:
    (mean,) = readings(tmp_path, of_windows={column: value})[title]
    assert mean.split(" ± ")[0] == text


def test_a_bit_mask_has_its_values_and_no_mean(tmp_path: Path) -> None:
    windows = [window("naive", clock_event_mask=value) for value in (4, 0, 64, 4)]
    assert readings(tmp_path, windows=windows)["clock event mask"] == ["0x0, 0x4, 0x40"]


def test_each_launch_mode_has_readings_of_its_own(tmp_path: Path) -> None:
    windows = [window("naive", fan_ratio=0.2), window("naive", way="graph", fan_ratio=0.4)]
    assert readings(tmp_path, windows=windows)["fan"] == ["20.0 %", "40.0 %"]


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


def test_a_table_of_a_probe_that_reports_do_not_know_has_its_keys_as_columns(
    tmp_path: Path,
) -> None:
    entries: list[dict[str, Any]] = [{"hop": "a", "moved_bytes": 2048}]
    entries += [{"hop": "b", "busy_ratio": 0.5, "spent_ms": 3.0, "lanes": [1, 2], "up": True}]
    entries[1]["moved_ms"] = 1.0
    run = with_utilization(tmp_path, tables={"hop_table": entries})
    found = table(blocks_of(utilization, run), "Hop table")
    assert found.folded
    columns = ("backend", "hop", "moved_bytes", "busy", "spent", "lanes", "up", "moved_ms")
    assert found.columns == columns
    assert [line[0] for line in found.texts] == [name for name in ACTIVE for _ in entries]
    assert [line[1:] for line in found.texts[:2]] == [
        ("a", "2 KiB", "", "", "", "", ""),
        ("b", "", "50.0 %", "3.00 ms", "1 × 2", "yes", "1.00 ms"),
    ]


LAUNCH = {
    "name": "attention_kernel",
    "launch_count": 5,
    "time_ms": 3.0,
    "grid": [32, 64, 1],
    "block": [256, 1, 1],
    "thread_register_count": 109,
    "block_shared_bytes": 66560,
    "waves": 15.515152,
    "occupancy_ratio": 0.25,
}


def test_the_kernels_of_all_backends_are_one_table(tmp_path: Path) -> None:
    copies = [{"name": f"copy{n}", "launch_count": 5, "time_ms": 0.1} for n in range(10)]
    tables = {"kernel_table": [*copies, LAUNCH], "profiled_call_count": 5}
    found = table(blocks_of(utilization, with_utilization(tmp_path, tables=tables)), "Kernels")
    launches = [one for one in found.texts if one[1] == "attention_kernel"]
    assert [one[0] for one in launches] == list(ACTIVE)
    assert dict(zip(found.columns, launches[0], strict=True)) == {
        "backend": "naive",
        "kernel": "attention_kernel",
        "launches per call": "1",
        "time per call": "600 μs",
        "share of time": "75.0 %",
        "grid": "32 × 64 × 1",
        "block": "256 × 1 × 1",
        "registers per thread": "109",
        "shared memory per block": "65 KiB",
        "waves": "15.5",
        "occupancy allowed": "25.0 %",
    }
    (rest,) = [one for one in found.texts if one[:2] == ("naive", "1 other entry")]
    assert rest[2:5] == ("1", "20.0 μs", "2.50 %")


def test_kernels_of_an_unknown_number_of_calls_have_shares_and_no_times(tmp_path: Path) -> None:
    run = with_utilization(tmp_path, tables={"kernel_table": [LAUNCH]})
    found = table(blocks_of(utilization, run), "Kernels")
    assert "time per call" not in found.columns
    assert found.texts[0][found.columns.index("share of time")] == "100 %"


def test_without_kernels_the_page_says_why(tmp_path: Path) -> None:
    tables = {"kernel_table": None, "profiled_call_count": None}
    why = {"kernel_table": "no CUPTI here"}
    run = with_utilization(tmp_path, windows=None, tables=tables, missing=why)
    notes = [one.text for one in blocks_of(utilization, run) if hasattr(one, "text")]
    assert "Missing, with the reason: kernel_table (no CUPTI here)." in notes


def test_the_card_has_the_longest_kernel_of_each_backend_beside_the_bars(tmp_path: Path) -> None:
    tables = {"kernel_table": [LAUNCH | {"name": "other", "time_ms": 1.0}, LAUNCH]}
    card = card_of(utilization, with_utilization(tmp_path, tables=tables))
    assert isinstance(card.picture, Bars)
    assert isinstance(card.decisions, Table)
    assert card.decisions.columns[:3] == ("backend", "kernel", "share of time")
    named = [line[:3] for line in card.decisions.texts]
    assert named == [(name, "attention_kernel", "75.0 %") for name in ACTIVE]
