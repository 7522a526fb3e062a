"""A run on Ray: two devices share its time, starting there costs little more than here, and one
process writes the rows of many.
"""

import json
import pickle
import random
import time
from pathlib import Path

import pytest

from attnbench.harness.rows.record import Planned, Record, Status
from attnbench.harness.run.engine import RunOptions
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.start import new_run
from attnbench.harness.scenario.selection import Selection
from tests.fakes.fleet import FakeRay
from tests.fakes.shard_runs import scenario
from tests.harness.fleet.conftest import QUICK, Nodes, nodes, until
from tests.harness.fleet.test_dispatch import Measured

__all__ = ["nodes", "until"]  # fixtures

MOST_SHARE = 0.6  # of the time of one device
MOST_START_S = 5.0
LEAST_ROWS_PER_S = 500
DEVICES, CASES = 64, 4096
LENGTHS = ",".join(str(32 + 16 * number) for number in range(12))
CLOCKED = (
    *("--backends", "keeps_pace", "--batch", "1", "--d-model", "32", "--heads", "2", *QUICK),
    *("--device", "cpu", "--memory-gib", "0.5", "--out", "results", "--json"),
)
"""A backend that sleeps: two of them do not disturb each other."""


def times(nodes: Nodes, *arguments: str, here: bool = False) -> tuple[float, float]:
    """Seconds until the run began, and from there to its end."""
    began = time.monotonic()
    process = nodes.start(*CLOCKED, *arguments, here=here)
    assert process.stdout is not None
    begin_s = 0.0
    for line in process.stdout:
        if json.loads(line)["reason"] == "begin":
            begin_s = time.monotonic() - began
    assert process.wait() == 0, nodes.said.read_text()
    process.stdout.close()
    return begin_s, time.monotonic() - began - begin_s


def test_two_devices_take_at_most_0_6_of_the_time_of_one(nodes: Nodes) -> None:
    _, one_s = times(nodes, "--seq-len", LENGTHS, "--devices", "1")
    _, two_s = times(nodes, "--seq-len", LENGTHS, "--devices", "2")
    assert two_s <= MOST_SHARE * one_s, f"{two_s:.1f} s and {one_s:.1f} s"


def test_starting_on_ray_takes_at_most_5_s_more_than_here(nodes: Nodes) -> None:
    here_s, _ = times(nodes, "--seq-len", "32", here=True)
    on_ray_s, _ = times(nodes, "--seq-len", "32", "--devices", "1")
    assert on_ray_s - here_s <= MOST_START_S, f"{on_ray_s:.1f} s and {here_s:.1f} s"


class WritesMuch(FakeRay):
    """Rows of five processes with four blocks each, which were pickled before, as Ray does."""

    def __init__(self) -> None:
        super().__init__(DEVICES)
        self.rows: dict[str, bytes] = {}

    def prepare(self, planned: list[Planned]) -> None:
        drawn = random.Random(0)
        for one in planned:
            blocks = [[[drawn.random() for _ in range(25)] for _ in range(4)] for _ in range(5)]
            values = {"device": "cpu", "attempt": 1, "host": "a", "block_ms": blocks}
            row = Record.of(one, Status.OK, "", {**values, "exactness": "exact", "spent_s": 1.0})
            self.rows[one.id] = pickle.dumps(row)

    def row(self, one: Planned, host: str) -> Record:
        return pickle.loads(self.rows[one.id])


def test_one_process_writes_the_rows_of_64_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, measured = WritesMuch(), Measured(tmp_path, monkeypatch)
    devices = measured.opened(ray)
    lengths = [16 * number for number in range(1, CASES // 4 + 1)]
    grid = {"seq_len": lengths, "d_model": 64, "heads": [1, 2]}
    options = RunOptions(command=["attnbench"], listener=Listener())
    run = new_run(scenario(grid=grid), tmp_path, 0, Selection(), options, devices)
    ray.prepare(run.units.planned)
    count, began_s = len(run.units.planned), time.process_time()
    devices.measure(run)
    spent_s = time.process_time() - began_s
    rows = (run.store.path / "rows.jsonl").read_bytes().splitlines()
    assert len(rows) == count == CASES
    print(f"{count / spent_s:.0f} rows per second")
    assert count / spent_s >= LEAST_ROWS_PER_S
