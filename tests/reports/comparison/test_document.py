"""reports/comparison/document.py: an object per case and metric."""

import json
from pathlib import Path

import pytest

from attnbench.reports.comparison.compare import compare_runs
from attnbench.reports.comparison.document import as_json
from tests.reports.data.test_decode import decode_run


def test_json_has_rates_shares_and_reasons_of_both(tmp_path: Path) -> None:
    before = decode_run(tmp_path / "base", calibrated={}, cache_bytes=None)
    comparison = compare_runs(before, decode_run(tmp_path / "new"))
    cases = json.loads(as_json(comparison))["cases"]
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
