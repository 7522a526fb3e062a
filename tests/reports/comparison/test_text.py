"""reports/comparison/text.py: both sides of a decode step against their measured bandwidth."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.comparison import text as compare_text
from attnbench.reports.comparison.compare import (
    Comparison,
    compare_runs,
)
from tests.reports.data.test_decode import decode_run


def compared(parent: Path, *, base: dict[str, Any], new: dict[str, Any]) -> Comparison:
    sides = (decode_run(parent / "base", **base), decode_run(parent / "new", **new))
    return compare_runs(*sides, None)


def column_of(comparison: Comparison) -> list[str]:
    """Of the lines that are about a latency."""
    table = compare_text.table(comparison)
    return [
        cell for line in table.texts if (cell := line[table.columns.index(compare_text.BANDWIDTH)])
    ]


def test_json_has_rates_shares_and_reasons_of_both(tmp_path: Path) -> None:
    comparison = compared(tmp_path, base={"calibrated": {}, "cache_bytes": None}, new={})
    cases = json.loads(compare_text.as_json(comparison))["cases"]
    (one,) = (
        case
        for case in cases
        if (case["metric"], case["backend"], case["kv_seq_len"], case["kv_heads"])
        == ("latency", "sdpa", 8192, 32)
    )
    base, new = one["base_decode"], one["new_decode"]
    assert base["bytes_per_s"] == pytest.approx(10e9)
    assert base["low_bytes_per_s"] < 10e9 < base["high_bytes_per_s"]
    assert base["bandwidth_ratio"] is base["measured_bytes_per_s"] is base["fits_in_cache"] is None
    assert "attnbench doctor --calibrate" in base["note"]
    assert new["bandwidth_ratio"] == pytest.approx(0.5)
    assert new["low_bandwidth_ratio"] < 0.5 < new["high_bandwidth_ratio"]
    assert (new["measured_bytes_per_s"], new["fits_in_cache"]) == (20e9, False)
    assert {case["base_decode"] for case in cases if case["metric"] != "latency"} == {None}
    rates = [cell for cell in column_of(comparison) if cell.startswith("10.0 GB/s (")]
    assert len(rates) == 6
    assert not any("%" in cell for cell in rates)  # no share beside a rate
    assert any(
        "not measured before, 20.0 GB/s now" in t for t in compare_text.sentences(comparison)
    )
