"""What a latency is: the time of warm calls, nothing else, in blocks that cases take in turn."""

import json
from pathlib import Path
from statistics import median
from typing import Any

from tests.contract.conftest import Attnbench, only_run, rows

PATIENT = "plan={like: quick, processes: 1, min_blocks: 3, max_blocks: 3, budget_s: 2}"
SHAPE = ("--batch", "1", "--seq-len", "64", "--d-model", "32", "--heads", "2")
BACKEND = """
import os, time
import torch

calls = 0

def prepare(problem, inputs, weights):
    def call():
        global calls
        calls += 1
        begun_ns = time.perf_counter_ns()
        time.sleep({sleep_s})
        result = torch.nn.functional.scaled_dot_product_attention(*inputs)
        took_ms = (time.perf_counter_ns() - begun_ns) / 1e6
        os.write(times, b"%f\\n" % took_ms)
        return result

    times = os.open(os.environ["TIMES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    return call
"""


def timed(attnbench: Attnbench, sleep_s: str) -> tuple[dict[str, Any], list[float]]:
    """The row of a backend that sleeps so long, and how long its calls took by its own clock."""
    folder = Path("backends")
    folder.mkdir()
    (folder / "sleeps.py").write_text(BACKEND.format(sleep_s=sleep_s))
    env = {"ATTNBENCH_BACKENDS": str(folder.absolute()), "TIMES": str(Path("times").absolute())}
    command = ("run", "--device", "cpu", "--backends", "sleeps", "--set", PATIENT, *SHAPE)
    done = attnbench(*command, "--runs", "runs", env=env, check=True)
    assert json.loads((only_run(Path("runs")) / "run.json").read_text())["run"] in done.stdout
    (row,) = rows(only_run(Path("runs")))
    assert row["status"] == "ok", row["reason"]
    return row, [float(line) for line in Path("times").read_text().splitlines()]


def test_a_latency_is_the_time_of_the_call_and_of_nothing_else(attnbench: Attnbench) -> None:
    row, own_ms = timed(attnbench, "5e-3")
    readings_ms = [ms for block in row["block_ms"][0] for ms in block]
    assert min(own_ms) <= min(readings_ms) < min(own_ms) + 1


def test_calls_are_not_timed_before_they_are_as_fast_as_they_get(attnbench: Attnbench) -> None:
    row, own_ms = timed(attnbench, "max(1e-3, 31e-3 - 1e-3 * calls)")
    assert own_ms[0] > 30
    assert max(median(block) for block in row["block_ms"][0]) < 10
    assert row["warmup_stationary"] is not None, "there were calls enough to tell"


def test_cases_of_a_problem_take_turns(finished_run: Path) -> None:
    found = rows(finished_run)
    for seq_len, heads in {(row["seq_len"], row["heads"]) for row in found}:
        starts_s = [
            [block["started_unix_s"] for block in row["conditions"][0]]
            for row in found
            if (row["seq_len"], row["heads"]) == (seq_len, heads)
        ]
        assert len(starts_s) == 2
        assert all(len(one) >= 3 for one in starts_s)
        for number in range(1, min(map(len, starts_s))):
            before = max(one[number - 1] for one in starts_s)
            assert before < min(one[number] for one in starts_s), "a block of each, then the next"
