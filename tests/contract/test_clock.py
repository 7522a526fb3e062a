"""What a latency is, by the clock of the backend itself: the time of warm calls and nothing else,
on values that are new again and again.
"""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.contract.conftest import only_run, rows, run_attnbench

PATIENT = "plan={like: quick, processes: 1, min_blocks: 6, max_blocks: 6, budget_s: 2}"
SHAPE = ("--batch", "1", "--seq-len", "64", "--d-model", "32", "--heads", "2")
BACKEND = """
import hashlib, os, time
import torch

calls = 0

def prepare(problem, inputs, weights):
    def call():
        global calls
        calls += 1
        begun_ns = time.perf_counter_ns()
        values = hashlib.sha256(b"".join(x.numpy().tobytes() for x in inputs)).hexdigest()
        pause_s = SLEEP_S
        time.sleep(pause_s)
        result = torch.nn.functional.scaled_dot_product_attention(*inputs)
        took_ms = (time.perf_counter_ns() - begun_ns) / 1e6
        os.write(notes, f"{time.time()} {took_ms} {pause_s} {values}\\n".encode())
        return result

    notes = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    return call
"""


class Called(NamedTuple):
    """A call, as the backend saw it. `pause_s`: how long it meant to sleep; `values`: a digest of
    its inputs.
    """

    ended_s: float
    took_ms: float
    pause_s: float
    values: str


class Timed(NamedTuple):
    row: dict[str, Any]
    calls: list[Called]


def timed(folder: Path, sleep_s: str) -> Timed:
    """A run of a backend that sleeps so long in each call."""
    (folder / "backends").mkdir()
    (folder / "backends" / "sleeps.py").write_text(BACKEND.replace("SLEEP_S", sleep_s))
    env = {"ATTNBENCH_BACKENDS": str(folder / "backends"), "NOTES": str(folder / "notes")}
    command = ("run", "--device", "cpu", "--backends", "sleeps", "--set", PATIENT, *SHAPE)
    run_attnbench(*command, "--runs", "runs", env=env, cwd=folder, check=True)
    (row,) = rows(only_run(folder / "runs"))
    lines = [line.split() for line in (folder / "notes").read_text().splitlines()]
    return Timed(row, [Called(*map(float, numbers), values) for *numbers, values in lines])


def first_call_of(timed: Timed, block: dict[str, Any]) -> Called:
    return next(call for call in timed.calls if call.ended_s >= block["started_unix_s"])


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Timed:
    return timed(tmp_path_factory.mktemp("steady"), "5e-3")


def test_a_latency_is_the_time_of_the_call_and_of_nothing_else(steady: Timed) -> None:
    fastest_ms = min(ms for block in steady.row["block_ms"][0] for ms in block)
    own_ms = min(call.took_ms for call in steady.calls)
    assert own_ms <= fastest_ms < own_ms + 1


def test_values_are_new_in_each_block(steady: Timed) -> None:
    (blocks,) = steady.row["conditions"]
    assert len(blocks) >= 3
    for block in blocks:
        before = {call.values for call in steady.calls if call.ended_s < block["started_unix_s"]}
        assert first_call_of(steady, block).values not in before


def test_calls_are_not_timed_before_they_are_as_fast_as_they_get(tmp_path: Path) -> None:
    slow_at_first = timed(tmp_path, "max(1e-3, 61e-3 - 3e-3 * calls)")
    assert slow_at_first.calls[0].pause_s == pytest.approx(58e-3)
    (blocks,) = slow_at_first.row["conditions"]
    assert {first_call_of(slow_at_first, block).pause_s for block in blocks} == {1e-3}
    assert slow_at_first.row["warmup_stationary"] is not None, "there were calls enough to tell"
