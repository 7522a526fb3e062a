"""Only the store, without workers: a writer is killed at every step, byte by byte in a row, and
another takes over. Many tries, since none imports torch.
"""

import json
import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

from attnbench.harness.cases.case import Case
from attnbench.harness.files.safe_files import write_whole
from attnbench.harness.rows.run_store import Store, point_latest
from attnbench.reports.data.run_meta import read_run
from tests.fakes.stored_runs import case, plan, record

from ..dies_at_step import Steps
from ..rows import check_rows, whole_lines
from ..trial import Trial

TITLE = "writer of the store killed at every step"
COUNT = 400
SHORT = 15
ROWS = 5


def attempt(trial: Trial) -> None:
    cases = [case(number) for number in range(ROWS)]
    acknowledged = 0
    for _ in range(4):
        step, most_bytes = trial.random.randint(1, 45), trial.random.randrange(0, 3000)
        trial.outcome.what += f"step {step}, {most_bytes} bytes; "
        acknowledged = max(acknowledged, written_until_death(trial, cases, step, most_bytes))
        for run in trial.runs():
            on_disk = len(whole_lines(run))
            if on_disk < acknowledged:
                trial.outcome.lost += acknowledged - on_disk
                trial.outcome.wrong.append("a row is gone that was said to be on disk")
            read_run(run)
    write(trial.results, cases, lambda: None)
    (run,) = trial.runs()
    check_rows(run, trial.outcome)
    read_run(run)


def write(root: Path, cases: list[Case], say: Callable[[], None]) -> None:
    """What a run does with its files: `say` is called after each row that is on disk."""
    found = sorted(path.parent for path in root.glob("2*/run.json"))
    store = Store.reopen(found[0]) if found else Store.create(root, "killed", plan(cases))
    there = {json.loads(line)["case"] for line in whole_lines(store.path)}
    for one in cases:
        if one.id not in there:
            store.append([record(one)])
            say()
    write_whole(store.path / "report.html", "<p>" * 5000)
    store.close()
    point_latest(root, store.path.name)


def said_so(fd: int) -> None:
    os.write(fd, b"x")


def written_until_death(trial: Trial, cases: list[Case], step: int, most_bytes: int) -> int:
    """How many rows were on disk, by the writer's own words, when it died at a step."""
    already = sum(len(whole_lines(run)) for run in trial.runs())
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            Steps(step, signal.SIGKILL, most_bytes, str(trial.folder)).install()
            write(trial.results, cases, lambda: said_so(writing))
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(reading, "rb") as file:
        said = len(file.read())
    code = os.waitstatus_to_exitcode(status)
    trial.outcome.expect(code in (0, -signal.SIGKILL), f"the writer failed: {code}")
    return already + said
