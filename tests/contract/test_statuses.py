"""Every case ends as one row with one of ten statuses; a backend that fails costs no other one.

`interrupted` is in test_resume.py, `predicted_oom` in test_memory_limit.py.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.contract.conftest import by_backend, lives, only_run, run_attnbench

RECORDS_SEED = 7  # test_own_function.py measures the same problem with it
SCENARIO = """\
name: faults
question: What does a backend that fails cost the others?
backends:
  - naive
  - crashes
  - runs_out_of_memory
  - gives_nan
  - raises
  - hangs
  - hangs_in_launch
  - needs_package
  - sparse_local
  - forks
  - escapes
  - records
  - sdpa
device: cpu
grid: {batch: 1, seq_len: 64, d_model: 64, heads: 2}
plan: {like: quick, processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.05}
limits: {timeout_s: 4}
"""
FAILED = {  # status, and words of the reason
    "crashes": ("crashed", "SIGSEGV"),
    "runs_out_of_memory": ("oom", "64.00 GiB"),
    "gives_nan": ("incorrect", "NaN"),
    "raises": ("error", "KeyError: 'a bug of the backend'"),
    "hangs": ("timeout", "4 s"),
    "hangs_in_launch": ("timeout", "4 s"),
    "needs_package": ("unavailable", "no_such_package_for_attnbench"),
    "sparse_local": ("unsupported", "local"),
}
RIGHT = ("naive", "forks", "escapes", "records", "sdpa")


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    folder: Path
    code: int
    output: str
    error: str

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        return by_backend(self.folder)


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Faults:
    place = tmp_path_factory.mktemp("faults")
    (place / "faults.yaml").write_text(SCENARIO)
    files = {name: str(place / name) for name in ("FORKS_PID", "ESCAPES_PID", "RECORDS")}
    words = ("--runs", "runs", "--seed", RECORDS_SEED)
    done = run_attnbench("run", "faults.yaml", *words, cwd=place, env=files, backends=True)
    return Faults(
        folder=only_run(place / "runs"),
        code=done.returncode,
        output=done.stdout,
        error=done.stderr,
    )


@pytest.mark.parametrize("backend", FAILED)
def test_a_fault_is_one_row_with_its_status_and_the_reason(faults: Faults, backend: str) -> None:
    status, reason = FAILED[backend]
    row = faults.rows[backend]
    assert row["status"] == status, row["reason"]
    assert reason in row["reason"]
    assert row["block_ms"] is None, "what failed has no time"
    assert row["attempt"] == 1


def test_honest_neighbours_are_measured_as_if_alone(faults: Faults) -> None:
    for backend in RIGHT:
        row = faults.rows[backend]
        assert (row["status"], row["reason"]) == ("ok", ""), backend
        assert len(row["block_ms"][0]) == 2
        assert min(min(block) for block in row["block_ms"][0]) > 0
    naive = faults.rows["naive"]
    assert naive["peak_bytes"] == naive["predicted_peak_bytes"] > 0
    assert naive["error_ratio"] == 1, "it is the textbook formula"


def test_a_run_with_failed_cases_ends_with_1_and_says_which(faults: Faults) -> None:
    assert faults.code == 1
    assert faults.output.strip().endswith(faults.folder.name)
    assert "Traceback" not in faults.error
    for backend, (status, _) in FAILED.items():
        if status in ("crashed", "incorrect", "error", "timeout"):
            assert f"{backend}-b1-n64-d64-h2" in faults.error


def test_a_crash_and_an_error_keep_the_traceback(faults: Faults) -> None:
    assert "Segmentation fault" in faults.rows["crashes"]["log_tail"]
    assert "raises.py" in faults.rows["raises"]["log_tail"]


@pytest.mark.parametrize("file", ["FORKS_PID", "ESCAPES_PID"])
def test_what_a_backend_leaves_behind_is_ended(faults: Faults, file: str) -> None:
    pids = (faults.folder.parents[1] / file).read_text().split()
    assert pids
    for pid in map(int, pids):
        assert not (psutil.pid_exists(pid) and lives(psutil.Process(pid))), "a process is left"


def test_rows_are_strict_json_with_numbers_where_a_measured_case_promises_them(
    faults: Faults,
) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in rows.jsonl")

    text = (faults.folder / "rows.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n")
    found = [json.loads(line, parse_constant=refuse) for line in text.splitlines()]
    assert len({frozenset(row) for row in found}) == 1, "all rows have the same fields"
    promised = (
        *("peak_bytes", "input_bytes", "output_bytes", "minimal_bytes", "work_flops"),
        *("error_ratio", "error_l2_ratio", "shortest_call_ms", "spent_s", "processes"),
    )
    for row in found:
        assert bool(row["reason"]) == (row["status"] != "ok")
        assert row["wall_block_ms"] is row["launch_ms"] is row["graph_failed"] is None, "on a CPU"
        if row["status"] == "ok":
            for field in promised:
                assert isinstance(row[field], int | float), field
                assert row[field] > 0, field
