"""Memory is counted to the byte and limited: `oom`, `predicted_oom`, the longest N that fits."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import last_rows, only_run, rows, run_attnbench

MIB = 1 << 20
BUDGET = 64 * MIB
# fused needs two matrices of scores, 2 h N^2 fp32 numbers, beside inputs and output: with two heads
# 72 MiB at N = 2 112, of which 64 MiB are too few and 128 MiB are enough
SCENARIO = """\
name: limited
question: What fits into 64 MiB?
backends: [fused, naive, sdpa]
device: cpu
measure: [memory]
grid: {batch: 1, seq_len: [128, 1024, 2112, 1m], d_model: 32, heads: 2}
plan: {like: quick, processes: 1}
limits: {memory_gib: 0.0625}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    code: int
    rows: dict[tuple[str, int], dict[str, Any]]


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Limited:
    place = tmp_path_factory.mktemp("limited")
    (place / "limited.yaml").write_text(SCENARIO)
    done = run_attnbench("run", "limited.yaml", "--runs", "runs", "--quiet", cwd=place)
    assert done.returncode in (0, 1), done.stderr
    found = last_rows(only_run(place / "runs")).values()
    return Limited(
        code=done.returncode, rows={(row["backend"], row["seq_len"]): row for row in found}
    )


@pytest.mark.parametrize("seq_len", [128, 1024])
def test_peaks_are_the_bytes_that_were_predicted(limited: Limited, seq_len: int) -> None:
    for backend in ("fused", "naive"):
        row = limited.rows[backend, seq_len]
        assert row["status"] == "ok", row["reason"]
        assert row["peak_bytes"] == row["predicted_peak_bytes"]
        assert row["predicted_source"] == "formula"
    assert limited.rows["fused", seq_len]["peak_bytes"] == 2 * 2 * seq_len**2 * 4
    assert limited.rows["sdpa", seq_len]["peak_bytes"] < 8 * seq_len * 32 * 4
    assert limited.rows["naive", seq_len]["input_bytes"] == 3 * seq_len * 32 * 4


def test_a_case_that_needs_more_than_the_budget_is_out_of_memory(limited: Limited) -> None:
    row = limited.rows["fused", 2112]
    assert row["status"] in ("oom", "predicted_oom")
    assert row["reason"]
    assert BUDGET < row["input_bytes"] + row["predicted_peak_bytes"] < 2 * BUDGET
    assert row["peak_bytes"] is row["block_ms"] is None, "missing, and not 0"
    for backend in ("naive", "sdpa"):
        assert limited.rows[backend, 2112]["status"] == "ok", "half as much fits"


def test_what_cannot_fit_by_far_is_predicted_and_no_failure(limited: Limited) -> None:
    for backend in ("fused", "naive", "sdpa"):
        row = limited.rows[backend, 1 << 20]
        assert row["status"] == "predicted_oom"
        assert row["input_bytes"] > BUDGET
        assert row["spent_s"] is None or row["spent_s"] < 60
    assert limited.code == 0, "out of memory is a result"


def test_the_wall_is_where_the_formula_meets_the_budget(tmp_path: Path) -> None:
    shape = ("--batch", 1, "--heads", 2, "--head-dim", 16, "--device", "cpu", "--backends", "fused")
    limit = ("--memory-gib", 0.0625, "--tolerance", "10%", "--time-budget", 600)
    done = run_attnbench("wall", *shape, *limit, "--runs", "runs", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = rows(only_run(tmp_path / "runs"))
    assert (row["kind"], row["status"]) == ("wall", "ok")
    fits, fails, predicted = row["seq_len_low"], row["seq_len_high"], row["predicted_seq_len"]

    def needed(n: int) -> int:
        return 3 * n * 32 * 4 + 2 * 2 * n**2 * 4

    assert needed(predicted) <= BUDGET < needed(predicted + 1)
    assert row["limited_by"] == "memory"
    assert 0.85 * predicted <= fits < fails
    assert needed(fits) <= BUDGET
    tried = {(one["seq_len"], one["status"]) for one in row["probes"]}
    assert {(fits, "ok"), (fails, "oom")} <= tried, "what is said was tried"
