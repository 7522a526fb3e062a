"""reports/comparison/text.py: a line per case, and JSON."""

import json
from pathlib import Path

import pytest

from attnbench.reports.comparison import text as compare_text
from attnbench.reports.comparison.compare import compare_backends, compare_runs
from tests.made_runs import PLANNED, quickstart, row, write_run
from tests.reports.data.test_decode import decode_run


def test_json_has_rates_shares_and_reasons_of_both(tmp_path: Path) -> None:
    before = decode_run(tmp_path / "base", calibrated={}, cache_bytes=None)
    comparison = compare_runs(before, decode_run(tmp_path / "new"), None)
    cases = json.loads(compare_text.as_json(comparison))["cases"]
    wanted = {"metric": "latency", "backend": "sdpa", "kv_seq_len": 8192, "kv_heads": 32}
    (one,) = (case for case in cases if wanted.items() <= case.items())
    base, new = one["base_decode"], one["new_decode"]
    assert base["bytes_per_s"] == pytest.approx(10e9)
    assert base["low_bytes_per_s"] < 10e9 < base["high_bytes_per_s"]
    assert base["bandwidth_ratio"] is base["measured_bytes_per_s"] is base["fits_in_cache"] is None
    assert "attnbench doctor --deep" in base["note"]
    assert new["bandwidth_ratio"] == pytest.approx(0.5)
    assert new["low_bandwidth_ratio"] < 0.5 < new["high_bandwidth_ratio"]
    assert (new["measured_bytes_per_s"], new["fits_in_cache"]) == (20e9, False)
    assert {case["base_decode"] for case in cases if case["metric"] != "latency"} == {None}


def test_a_case_has_one_line_and_says_which_side_ran_out_of_memory(tmp_path: Path) -> None:
    comparison = compare_backends(quickstart(tmp_path), "fused", None)
    table = compare_text.table(comparison)
    assert len(table.rows) == len({one.shown.case for one in comparison.verdicts})
    by_name = {tuple(row[:2]): row[table.columns.index("time")] for row in table.texts}
    ended = {text for text in by_name.values() if "×" not in text}
    assert "fused: out of memory" in ended
    marks = [text[0] for text in by_name.values() if "×" in text]
    assert marks == sorted(marks, key="fs=◐–".index), "what is decided comes first"


@pytest.mark.parametrize(("contended", "note"), [(0, ""), (8, ", processor 520 μs")])
def test_times_that_other_work_disturbed_have_processor_time_beside_them(
    tmp_path: Path, contended: int, note: str
) -> None:
    used = [[{"calls": 3, "processor_ms": 0.52}] * 8]
    rows = [row(one, conditions=used, contended_blocks=contended, blocks=8) for one in PLANNED]
    run = write_run(tmp_path, PLANNED, rows)
    table = compare_text.table(compare_runs(run, run, None))
    times = {text[table.columns.index("new")] for text in table.texts}
    assert times
    assert {time.partition(",")[2] for time in times} == {note.removeprefix(",")}
