"""reports/analysis/speedup.py: which backend is the baseline, and its ratios as text."""

from pathlib import Path

import pytest

from attnbench.reports.analysis.speedup import baseline, finding, speed_ups
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.row_groups import groups, records
from tests.made_runs import inexact, quickstart
from tests.reports.rendering import rows_of


def test_the_baseline_is_exact_unless_the_scenario_says_otherwise(tmp_path: Path) -> None:
    rows = rows_of(inexact(tmp_path, backends=("linformer", "fused", "sdpa")))
    planned = {"backends": ["linformer", "fused", "sdpa"]}
    assert baseline({"scenario": planned}, rows) == "fused"
    assert baseline({"scenario": planned | {"baseline": "linformer"}}, rows) == "linformer"
    (group,) = groups(rows, "seq_len")
    text = finding(group, "fused")
    assert text.index("sdpa is") < text.index("linformer (approximate, error 12 %) is")
    assert len(speed_ups(group.rows, "fused")) == 2 * len((256, 512, 1024, 2048, 4096))


def test_the_ratio_is_the_baselines_time_over_the_backends_and_paired_in_a_session(
    tmp_path: Path,
) -> None:
    rows = records(frame([read_run(quickstart(tmp_path))]))
    (group, *_) = groups(rows, "seq_len")
    found = {
        (one.row["backend"], one.row["seq_len"]): one for one in speed_ups(group.rows, "fused")
    }
    one = found["sdpa", 1024].ratio
    assert one is not None
    assert one.paired
    assert one.low < one.value < one.high
    times = {row["backend"]: row["latency_ms"] for row in group.rows if row["seq_len"] == 1024}
    assert one.value == pytest.approx(times["fused"] / times["sdpa"], rel=0.01)
    assert found["sdpa:flash", 1024].ratio is None
    assert ("fused", 1024) not in found
    assert "against fused: sdpa is" in finding(group, "fused")
    assert "times as fast" in finding(group, "fused")


def test_the_baseline_is_the_scenarios_or_else_the_first_planned_that_ran(tmp_path: Path) -> None:
    rows = [{"backend": "b"}, {"backend": "a"}]
    assert baseline({"scenario": {"baseline": "a"}}, rows) == "a"
    assert baseline({"scenario": {"baseline": "gone", "backends": ["gone", "a", "b"]}}, rows) == "a"
    assert baseline({"scenario": {}}, rows) == "b"
    assert baseline({"scenario": {"baseline": None, "backends": "?"}}, []) is None
