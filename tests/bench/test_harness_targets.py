"""What the harness itself costs, against its targets. `make bench` runs these; timed tests have no
place in the suite.
"""

import sys
import time
from pathlib import Path
from statistics import median

import pytest

from attnbench.harness.rows.run_store import Store
from attnbench.harness.run.worker_pool import start_worker
from attnbench.harness.scenario import from_mapping
from attnbench.harness.scenario.selection import planned
from tests.bench.conftest import child, rows_of, times_s
from tests.conftest import command_line, environment, ran
from tests.fakes.stored_runs import case, record

GUARD = """
import os, resource
from attnbench.harness.process.guard import guarded
before = resource.getrusage(resource.RUSAGE_CHILDREN)
if os.fork() == 0:
    guarded(os.getppid(), ())
    os._exit(0)
assert os.wait()[1] == 0
after = resource.getrusage(resource.RUSAGE_CHILDREN)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
"""


def test_a_guard_costs_less_than_20_ms_of_processor_time() -> None:
    command = [sys.executable, "-c", GUARD]
    done = ran(command, check=True)
    assert float(done.stdout) < 0.02


@pytest.mark.parametrize(
    ("arguments", "most_s"),
    [
        ("--version", 0.3),
        ("list scenarios", 0.3),
        ("--help", 0.5),  # rich, which groups the options, takes 0.15 s to import
    ],
)
def test_light_commands_answer_at_once(arguments, most_s):
    command = command_line(*arguments.split())
    assert median(times_s(lambda: ran(command, check=True), 7)) <= most_s


def test_a_list_of_backends_that_is_kept_answers_in_1_5_s(tmp_path):
    settings = environment({"ATTNBENCH_CACHE": str(tmp_path), "ATTNBENCH_BACKENDS": ""})
    command = command_line("list", "backends", "--device", "cpu")
    assert median(times_s(lambda: ran(command, env=settings, check=True), 5)) <= 1.5


def test_a_dry_run_of_36_cases_takes_0_9_s_beside_importing_torch(tmp_path: Path) -> None:
    """Side by side, in time of the processor: both share what else the machine does."""
    (torch_alone := tmp_path / "torch_alone.py").write_text("import torch")
    beside_s = []
    for _ in range(5):
        said, cpu_s, _ = child("attnbench", *["run", "quickstart", "--dry-run", "--device", "cpu"])
        assert "36 cases" in said
        beside_s.append(cpu_s - child(torch_alone)[1])
    assert median(beside_s) <= 0.9


def test_10_000_cases_are_expanded_within_a_second():
    grid = {
        "batch": list(range(1, 11)),
        "seq_len": list(range(64, 114)),
        "d_model": [64, 128],
        "heads": [1, 2, 4, 8, 16],
    }
    data = {"name": "large", "question": "?", "backends": ["fused", "sdpa"], "grid": grid}

    def expand():
        scenario = from_mapping(data, "bench")
        return [case.id for case in planned(scenario, "cpu").cases]

    assert len(set(expand())) == 10_000
    assert median(times_s(expand, 3)) <= 1.0


def test_a_row_is_on_disk_within_2_ms(tmp_path):
    store = Store.create(tmp_path, "bench", {})
    kept = record(case(), block_ms=[[[1.2345678] * 20] * 11])
    assert median(times_s(lambda: store.append([kept]), 200)) <= 0.002
    store.close()


def test_a_run_is_at_most_1_3_times_its_measured_phases_and_worker_starts(tmp_path):
    start = time.perf_counter()
    start_worker("cpu").close()
    worker_start_s = time.perf_counter() - start
    command = "run --backends naive,fused,sdpa --batch 1 --seq-len 256,512,1k,2k --d-model 512"
    start = time.perf_counter()
    rows = rows_of(f"{command} --heads 1,8 --plan quick", out=tmp_path)
    run_s, measured_s = time.perf_counter() - start, sum(row["spent_s"] for row in rows)
    print(f"run {run_s:.2f} s, measured {measured_s:.2f}, worker started in {worker_start_s:.2f}")
    assert run_s <= 1.3 * (measured_s + worker_start_s)
