"""reports/subjects/_memory_over_n.py: growth and end of memory over N, and whether counts agree."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.subjects._memory_over_n import (
    MemoryCurve,
    disagreement,
    families,
    memory_curves,
    other_peaks,
)
from tests.made_runs import GIB, LENGTHS, grid, over_n, row, write_run
from tests.reports.rendering import rows_and_meta, rows_of
from tests.reports.subjects.test_wall_rows import planned, wall, wall_row


def curves(run: Path, heads: int = 8) -> dict[str, MemoryCurve]:
    rows, meta = rows_and_meta(run)
    (family,) = families(rows)
    return {one.backend: one for one in memory_curves(family[heads], meta)}


def test_bytes_without_a_polynomial_are_named_by_their_last_doubling(tmp_path: Path) -> None:
    cases = grid(("fused",), LENGTHS)
    sizes = {512: 3.1e6, 1024: 1.3e7, 2048: 5e7, 4096: 2.03e8, 8192: 8.1e8}
    rows = [
        row(one, predicted_peak_bytes=None, peak_bytes=int(sizes[one["seq_len"]])) for one in cases
    ]
    (found,) = curves(write_run(tmp_path, cases, rows)).values()
    assert (found.peak, found.growth) == (None, "quadratic")


def test_what_is_kept_between_calls_makes_the_formula_too_small(tmp_path: Path) -> None:
    (found,) = curves(over_n(tmp_path, workspace_bytes=1 << 26)).values()
    assert (found.peak, found.stop_n) == (None, None)


def test_a_search_on_the_same_problem_counts_more_than_the_formula(tmp_path: Path) -> None:
    cases = grid(("fused",), LENGTHS)
    rows: list[dict[str, Any]] = [
        row(one, "oom" if one["seq_len"] == 8192 else "ok") for one in cases
    ]
    walls = [wall("fused"), wall("fused", heads=4)]
    rows += [
        wall_row(walls[0], 5690, 5700, memory_bytes=2 * GIB),
        wall_row(walls[1], 7000, 7010, memory_bytes=2 * GIB),
    ]
    (found,) = curves(write_run(tmp_path, cases, rows, walls=planned(walls))).values()
    assert (found.stop_n, found.searched) == (5690, True)


def test_families_join_heads_and_keep_other_problems_apart(tmp_path: Path) -> None:
    cases = [
        *grid(("fused",), LENGTHS, heads=(1, 8)),
        *grid(("fused",), LENGTHS[:3], heads=(1, 8), dtype="bf16"),
    ]
    rows = rows_of(write_run(tmp_path, cases, [row(one) for one in cases]))
    assert [sorted(family) for family in families(rows)] == [[1, 8], [1, 8]]
    assert [family[1].problem["dtype"] for family in families(rows)] == ["fp32", "bf16"]


# ---- other counts of a peak ----------------------------------------------------------------------

MIB = 1 << 20


def row_with_peaks(measured: int = 150 * MIB, **changes: Any) -> dict[str, Any]:
    counts = ("peak_bytes", "predicted_peak_bytes", "resident_peak_bytes")
    usual = {"status": "ok", "device": "cpu", "heads": 8, "predicted_source": "formula"}
    return usual | dict.fromkeys(counts, measured) | changes


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, ""),
        ({"predicted_peak_bytes": 150 * MIB - 64}, ""),
        ({"predicted_peak_bytes": 134 * MIB}, "formula 16 MiB less"),
        ({"predicted_peak_bytes": 150 * MIB + 200}, "formula 200 B more"),
        ({"device": "cuda", "predicted_peak_bytes": 150 * MIB + 200}, ""),
        ({"predicted_peak_bytes": None, "resident_peak_bytes": None}, ""),
        ({"resident_peak_bytes": 154 * MIB}, ""),
        ({"resident_peak_bytes": 200 * MIB}, "resident 50 MiB more"),
        ({"measured": MIB, "resident_peak_bytes": 9 * MIB}, ""),
        ({"status": "oom", "peak_bytes": None}, ""),
    ],
)
def test_what_differs_by_more_than_its_way_of_counting_allows_is_a_disagreement(
    changes: dict[str, Any], text: str
) -> None:
    assert disagreement(row_with_peaks(**changes)) == text


def test_a_prediction_that_came_from_the_meta_device_is_no_formula() -> None:
    row = row_with_peaks(
        predicted_source="meta",
        predicted_peak_bytes=140 * MIB,
        resident_peak_bytes=None,
    )
    assert other_peaks(row) == []
