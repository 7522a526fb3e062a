"""How many rows a second the driver of a run on Ray takes of a thousand devices, through Ray."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from attnbench.harness.fleet.dispatch import run_on
from attnbench.harness.fleet.elsewhere import DevicesElsewhere
from attnbench.harness.fleet.ray_seats import Seat, Wish
from attnbench.harness.fleet.remote import File, NodeWanted, Running
from attnbench.harness.fleet.shipping import Shipping
from attnbench.harness.process.signals import Signals
from attnbench.harness.rows.record import Planned, Record, written
from attnbench.harness.rows.run_files import read_rows
from attnbench.harness.run.engine import RunOptions
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.planning import new_run
from attnbench.harness.scenario.selection import Selection
from attnbench.harness.scenario.shards import Units
from tests.bench.conftest import child
from tests.conftest import ROOT
from tests.fakes import shard_runs, stored_runs
from tests.fakes.fleet import opened

pytest.importorskip("ray")

DEVICES, ACTORS, CASES = 1000, 4, 10_000
LEAST_ROWS_PER_S = 1500
PROGRAM = f"""
import json, os, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
os.environ["PYTHONPATH"] += os.pathsep + {str(ROOT)!r}  # of Ray's processes
from tests.bench.test_ray_driver_targets import drive
print(json.dumps(drive(Path(sys.argv[1]))))
"""
CONDITION = {
    **dict.fromkeys(("calls", "new_values", "minor_faults", "major_faults"), 10),
    **dict.fromkeys(("started_unix_s", "wall_s", "user_s", "system_s", "waited_s"), 1763800000.125),
    "involuntary_switches": 2,
    "steal_s": 0.0,
    "throttled_s": 0.0,
}


class ManyDevices:
    """Says what so many devices would that measure three cases in two seconds: what it does once a
    second, and at the end of its work the rows and a log. Measures nothing.
    """

    async def measure(self, number: int, work: Units) -> AsyncIterator[list[Any]]:
        planned = list(work.planned)
        for one in planned[: max(1, 2 * len(planned) // 3)]:
            yield [Running(one.id, "latency")]
            await asyncio.sleep(0)
        yield [*(a_row(one, number) for one in planned), File("worker-1.log", bytes(200))]

    async def call(self, *_: object) -> None: ...


def a_row(one: Planned, number: int) -> Record:
    """As a standard plan has it: 5 processes of 4 blocks, 11 KB."""
    random = Random(number)
    blocks = [[[1 + random.random() for _ in range(10)] for _ in range(4)] for _ in range(5)]
    values = {"block_ms": blocks, "conditions": [[CONDITION] * 4] * 5, "processes": 5}
    made = stored_runs.record(one, **values)  # type: ignore[arg-type]
    return written(replace(made, values={**made.values, "host": f"host{number}"}))


class OneOfMany:
    """A device of ManyDevices, as RayFleet has it."""

    def __init__(self, actor: Any, number: int) -> None:
        self.call, asked = actor.call, actor.measure.remote
        self.measure = SimpleNamespace(remote=lambda work, *_, **__: asked(number, work))


def drive(root: Path) -> dict[str, float]:
    """What a driver takes, and its processor time for that, of all its threads together."""
    import ray

    from attnbench.harness.fleet.ray_cluster import connected
    from attnbench.harness.fleet.ray_devices import RayFleet

    with connected("local"):
        actors = [ray.remote(ManyDevices).options(num_cpus=0).remote() for _ in range(ACTORS)]
        ray.get([actor.call.remote() for actor in actors])
        fleet = RayFleet(NodeWanted(device="cpu", settings={}), Wish(), lambda: None, print)
        numbers = range(DEVICES)
        fleet.opened = {number: opened(number) for number in numbers}
        fleet._seats = dict.fromkeys(numbers, Seat(node_id="", host="host", gpus=0, cpus=1))
        fleet._actors = {one: OneOfMany(actors[one % ACTORS], one) for one in numbers}
        fleet._known = {node["NodeID"] for node in ray.nodes()}
        lengths = [8 * number for number in range(1, CASES // 10 + 1)]
        grid = {"batch": [1, 2, 3, 4, 5], "seq_len": lengths, "d_model": 64, "heads": [1]}
        limits = {"memory_gib": 1, "max_cases": CASES}
        plan = new_run(
            shard_runs.scenario(grid=grid, contrast=[], limits=limits),
            root,
            0,
            Selection(),
            RunOptions(command=["attnbench"], listener=Listener()),
            DevicesElsewhere(fleet, Signals(), Shipping(fleet)),
        )
        before_s = time.process_time()
        run_on(plan, fleet, Signals())
        spent_s = time.process_time() - before_s
    rows = [row["case"] for row in read_rows(plan.store.path) if row["status"] == "ok"]
    size = (plan.store.path / "rows.jsonl").stat().st_size
    return {"rows": len(set(rows)), "spent_s": spent_s, "row_bytes": size / len(rows)}


def test_a_driver_takes_1500_rows_a_second_of_1000_devices(benchmark, tmp_path: Path) -> None:
    (program := tmp_path / "drive.py").write_text(PROGRAM)
    said, _, peak_bytes = benchmark.pedantic(child, args=(program, tmp_path), rounds=1)
    found = json.loads(said)
    rate = found["rows"] / found["spent_s"]
    benchmark.extra_info.update(found, rows_per_s=rate, peak_bytes=peak_bytes)
    assert found["rows"] == CASES
    assert rate >= LEAST_ROWS_PER_S
