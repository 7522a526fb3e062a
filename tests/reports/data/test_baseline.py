"""reports/data/exactness.py: which backend is the baseline."""

from pathlib import Path

from attnbench.reports.data.exactness import baseline
from tests.made_runs import inexact
from tests.reports.rendering import rows_of


def test_the_baseline_is_exact_unless_the_scenario_says_otherwise(tmp_path: Path) -> None:
    rows = rows_of(inexact(tmp_path, backends=("linformer", "fused", "sdpa")))
    planned = {"backends": ["linformer", "fused", "sdpa"]}
    assert baseline({"scenario": planned}, rows) == "fused"
    assert baseline({"scenario": planned | {"baseline": "linformer"}}, rows) == "linformer"


def test_the_baseline_is_the_scenarios_or_else_the_first_planned_that_ran(tmp_path: Path) -> None:
    rows = [{"backend": "b"}, {"backend": "a"}]
    assert baseline({"scenario": {"baseline": "a"}}, rows) == "a"
    assert baseline({"scenario": {"baseline": "gone", "backends": ["gone", "a", "b"]}}, rows) == "a"
    assert baseline({"scenario": {}}, rows) == "b"
    assert baseline({"scenario": {"baseline": None, "backends": "?"}}, []) is None
