"""Scenario files as benchmarks of pytest: results, exit codes and pytest-benchmark's JSON."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ran
from tests.contract.conftest import only_run, rows, users_environment

pytest.importorskip("pytest_benchmark")
SCENARIO = """
name: small
question: Which is faster?
backends: [fused, sdpa]
device: cpu
grid: {seq_len: [64, 2k], d_model: 32, heads: 2}
plan: {like: quick, processes: 1, min_blocks: 3, max_blocks: 3, budget_s: 0.05}
limits: {memory_gib: 0.02}
"""


def benchmarks(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", *args, "-p", "no:cacheprovider", "--rootdir", folder]
    return ran(command, cwd=folder, env=users_environment())


def test_every_case_is_a_benchmark_and_its_calls_are_in_the_json(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SCENARIO)
    done = benchmarks(
        tmp_path, "small.yaml", "--benchmark-json=b.json", "--attnbench-expect", "oom"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed, 1 xfailed" in done.stdout
    found = {row["case"]: row for row in rows(only_run(tmp_path / "results"))}
    document = json.loads((tmp_path / "b.json").read_text())
    assert len(document["benchmarks"]) == 3
    for benchmark in document["benchmarks"]:
        info = benchmark["extra_info"]
        row = found[info["case"]]
        calls_ms = [call for process in row["block_ms"] for block in process for call in block]
        assert benchmark["stats"]["data"] == pytest.approx([call / 1000 for call in calls_ms])
        assert info["utilization_ratio"] is None
        assert info["peak_bytes"] == row["peak_bytes"]
    failed = benchmarks(tmp_path, "small.yaml", "-k", "n2048 and fused")
    assert failed.returncode == 1
    assert "1 failed" in failed.stdout


def test_a_mistake_in_a_scenario_is_an_error_of_collecting_it_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(SCENARIO.replace("heads:", "head:"))
    done = benchmarks(tmp_path, "bad.yaml")
    assert done.returncode == 2
    assert "bad.yaml:6:" in done.stdout
    assert "did you mean grid.heads?" in done.stdout
    assert not (tmp_path / "results").exists()
