"""reports/data/exactness.py: rows of inexact backends, and which backend is the baseline."""

from pathlib import Path

from attnbench.reports.data.exactness import baseline
from attnbench.reports.data.load import load
from tests.made_runs import case, inexact, problem, row, write_run
from tests.reports.rendering import rows_of


def test_the_baseline_is_the_scenarios_or_the_first_planned_that_is_exact_and_ran(
    tmp_path: Path,
) -> None:
    names = ("linformer", "fused", "sdpa")
    rows = rows_of(inexact(tmp_path, names, lengths=(256,)))
    assert baseline({"scenario": {"backends": names}}, rows) == "fused"
    assert baseline({"scenario": {"baseline": "linformer"}}, rows) == "linformer"
    rows = [{"backend": "b"}, {"backend": "a"}]
    assert baseline({"scenario": {"baseline": "gone", "backends": ["gone", "a", "b"]}}, rows) == "a"
    assert baseline({"scenario": {}}, rows) == "b"
    assert baseline({"scenario": {"baseline": None, "backends": "?"}}, []) is None


def test_old_rows_are_exact(tmp_path: Path) -> None:
    planned = case("fused", problem(128))
    old = write_run(tmp_path / "old", [planned], [row(planned)])
    assert "exactness" not in (old / "rows.jsonl").read_text()
    assert (load(old)["latency_ms"].notna() & load(old)["achieved_flops_per_s"].notna()).all()
