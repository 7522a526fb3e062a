"""A thousand devices hand their rows to one process: how fast it puts them on disk, in how much
memory, and whether anything is lost when tasks die.
"""

import json
import subprocess
import sys
from collections import Counter
from heapq import heapify, heappop, heappush
from pathlib import Path
from random import Random
from time import perf_counter, process_time
from typing import NamedTuple

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.rows.record import Record, Status
from attnbench.harness.rows.run_files import read_rows
from attnbench.harness.store.run_store import Store
from attnbench.impls.problem import Problem
from tests.conftest import ROOT, environment
from tests.fakes.stored_runs import plan, record

DEVICES, GROUPS, GROUP_CASES = 1000, 1000, 20
CASE_S = 0.25  # of a simulated device: together 4,000 rows a second, twice what is wanted
DYING = 0.1  # of all tasks
TRIES = 2  # of a group; then its other cases have crashed
MOST_BATCH = 256  # rows of one append; the devices of others wait
LEAST_ROWS_PER_S = 2000
MOST_MIB = 500


class Driven(NamedTuple):
    """`append_s`: in which rows were put on disk, all calls together, `processor_s` of that on a
    core; `batches`: their number.
    """

    path: Path
    append_s: float
    processor_s: float
    batches: int
    deaths: int


class Task(NamedTuple):
    """A group on a device, with the cases that are still to be measured, and which try it is."""

    cases: list[Case]
    attempt: int
    lives: int  # cases that it measures before it dies; all of them if it does not


def planned() -> list[list[Case]]:
    return [
        [
            Case(
                backend=f"fused:v{number}",
                problem=Problem(batch=1, seq_len=64 + group, d_model=64, heads=2),
            )
            for number in range(GROUP_CASES)
        ]
        for group in range(GROUPS)
    ]


def measured(case: Case, attempt: int, device: int, random: Random) -> Record:
    """A row as a standard plan has it: 5 processes of 4 blocks, 10 KB."""
    level_ms = random.lognormvariate(0, 1)
    blocks = [[[level_ms * (1 + random.random() / 50) for _ in range(10)] for _ in range(4)]] * 5
    condition = {
        "calls": 10,
        "new_values": 0,
        "started_unix_s": 1.7638e9 + random.random(),
        "wall_s": random.random(),
        "user_s": random.random(),
        "system_s": 0.01,
        "minor_faults": 3,
        "major_faults": 0,
        "involuntary_switches": 2,
        "waited_s": random.random() / 1e3,
        "steal_s": 0.0,
        "throttled_s": 0.0,
    }
    where = {"host": f"node{device // 8}", "device_uuid": f"GPU-{device:08x}"}
    values = {"block_ms": blocks, "conditions": [[condition] * 4] * 5, "processes": 5, **where}
    made = record(case, **values)
    return Record(
        planned=case,
        device="cuda",
        attempt=attempt,
        status=made.status,
        values=made.values,
    )


def crashed(case: Case, attempt: int, device: int) -> Record:
    return Record(
        planned=case,
        device="cuda",
        attempt=attempt,
        status=Status.CRASHED,
        reason=f"its task died on node{device // 8}, for the second time",
    )


def drive(root: Path, seed: int) -> Driven:
    """Devices measure in simulated time, the driver appends in real time.

    What has arrived while the driver wrote is its next batch. A task dies at any of its cases; what
    it has delivered is kept, the rest is measured once more, on another device.
    """
    random = Random(seed)
    groups = planned()
    store = Store.create(root, "many", plan([case for group in groups for case in group]))
    waiting = [task_of(group, 1, random) for group in reversed(groups)]
    tasks: dict[int, Task] = {}
    ends = [(CASE_S * random.random(), device) for device in range(DEVICES)]
    heapify(ends)
    now_s = append_s = processor_s = 0.0
    batches = deaths = 0
    while ends:
        now_s = max(now_s, ends[0][0])
        arrived: list[Record] = []
        while ends and ends[0][0] <= now_s and len(arrived) < MOST_BATCH:
            end_s, device = heappop(ends)
            task = tasks.pop(device, None)
            if task is not None and task.lives == 0:
                deaths += 1
                if task.attempt < TRIES:
                    waiting.append(task_of(task.cases, task.attempt + 1, random))
                else:
                    arrived += [crashed(case, task.attempt, device) for case in task.cases]
                task = None
            elif task is not None:
                first, *others = task.cases
                arrived.append(measured(first, task.attempt, device, random))
                task = task._replace(cases=others, lives=task.lives - 1) if others else None
            if task is None and waiting:
                task = waiting.pop()
            if task is not None:
                tasks[device] = task
                heappush(ends, (end_s + CASE_S * random.uniform(0.5, 1.5), device))
        if arrived:
            begin_s, processor_s = perf_counter(), processor_s - process_time()
            store.append(arrived)
            took_s, processor_s = perf_counter() - begin_s, processor_s + process_time()
            now_s, append_s, batches = now_s + took_s, append_s + took_s, batches + 1
    store.close()
    return Driven(store.path, append_s, processor_s, batches, deaths)


def task_of(cases: list[Case], attempt: int, random: Random) -> Task:
    dies = random.random() < DYING
    return Task(cases, attempt, random.randrange(len(cases)) if dies else len(cases))


PROGRAM = """
import json, resource, sys
from pathlib import Path
from tests.bench.test_store_targets import drive
found = drive(Path(sys.argv[1]), int(sys.argv[2]))
peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(json.dumps([str(found.path), *found[1:], peak_mib]))
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_a_driver_keeps_up_with_a_thousand_devices_and_loses_nothing(
    tmp_path: Path, seed: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(seed)],
        env=environment({"PYTHONPATH": f"{ROOT / '.package'}:{ROOT}"}),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    path, append_s, processor_s, batches, deaths, peak_mib = json.loads(done.stdout)
    rows_per_s, busy = (GROUPS * GROUP_CASES / seconds for seconds in (append_s, processor_s))
    print(
        f"{rows_per_s:.0f} rows/s, {busy:.0f} per second of a core, {batches} batches, {deaths}"
        f" deaths, {peak_mib} MiB"
    )
    last: dict[str, str] = {}
    rows = Counter[str]()
    for row in read_rows(Path(path)):
        assert row["attempt"] in range(1, TRIES + 1)
        last[row["case"]] = row["status"]
        rows[row["case"]] += 1
    assert last.keys() == {case.id for group in planned() for case in group}
    assert set(rows.values()) == {1}
    assert deaths >= 0.8 * DYING * GROUPS
    assert 0 < sum(status == "crashed" for status in last.values()) < DYING * len(last)
    assert peak_mib <= MOST_MIB
    assert rows_per_s >= LEAST_ROWS_PER_S
