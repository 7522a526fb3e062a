"""reports/comparison/decode.py: both sides of a decode step against their measured bandwidth."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.comparison import decode
from attnbench.reports.comparison import text as compare_text
from attnbench.reports.comparison.compare import (
    Comparison,
    compare_backends,
    compare_interleaved,
    compare_runs,
)
from tests.reports.fake_decode import calibration, decode_run
from tests.reports.fake_runs import quickstart


def compared(parent: Path, *, base: dict[str, Any], new: dict[str, Any]) -> Comparison:
    sides = (decode_run(parent / "base", **base), decode_run(parent / "new", **new))
    return compare_runs(*sides, None)


def column_of(comparison: Comparison) -> list[str]:
    titles, lines = compare_text.table(comparison)
    """Of the lines that are about a latency."""
    return [cell for line in lines if (cell := line[titles.index(decode.TITLE)])]


def test_the_table_has_the_share_of_either_side_with_its_interval(tmp_path: Path) -> None:
    comparison = compared(tmp_path, base={}, new={"speed": 1.5})
    cells = column_of(comparison)
    assert len(cells) == 12
    assert (
        sum(one.startswith("50.0 % (49.0 to 51.0) → 75.0 % (73.5 to 76.5)") for one in cells) == 6
    )
    texts = list(compare_text.sentences(comparison))
    (what,) = (text for text in texts if text.startswith("Bandwidth of decode steps:"))
    assert what.endswith("that calibration measured (20.0 GB/s).")
    (why,) = (text for text in texts if "fit in the CPU's cache" in text)
    assert why.startswith("Of these, 12 of 24 values:")


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


def test_without_a_measured_bandwidth_there_are_rates_and_the_command(tmp_path: Path) -> None:
    unknown = {"calibrated": {}, "cache_bytes": None}
    comparison = compared(tmp_path, base=unknown, new=unknown)
    assert all(cell.count(" GB/s (") == 2 for cell in column_of(comparison))
    texts = list(compare_text.sentences(comparison))
    assert "Bandwidth of decode steps: bytes that must be moved over the time." in texts
    (why,) = (text for text in texts if text.startswith("Of these"))
    assert why.endswith("attnbench doctor --calibrate.")


def test_devices_of_different_bandwidth_are_each_of_their_own(tmp_path: Path) -> None:
    slow = {"calibrated": calibration(copy_bytes_per_s=10e9)}
    comparison = compared(tmp_path, base={}, new=slow)
    assert any("(20.0 GB/s before, 10.0 GB/s now)" in t for t in compare_text.sentences(comparison))
    assert any(cell.startswith("50.0 %") and "→ 100 %" in cell for cell in column_of(comparison))


def test_backends_and_turns_have_it_too(tmp_path: Path) -> None:
    run = decode_run(tmp_path / "one")
    backends = compare_backends(run, "sdpa", None)
    assert all("50.0 %" in cell and "→ 25.0 %" in cell for cell in column_of(backends))
    turns = [decode_run(tmp_path / str(n)) for n in range(3)]
    cells = column_of(compare_interleaved(turns, turns, None))
    assert all(cell.count(" % (") == 2 for cell in cells)


def test_comparisons_of_other_cases_say_nothing_about_it(tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    comparison = compare_runs(run, run, None)
    titles, _ = compare_text.table(comparison)
    assert decode.TITLE not in titles
    assert not [text for text in compare_text.sentences(comparison) if "decode" in text]
