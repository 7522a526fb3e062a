"""Two resumes at once, locks that are held or stale: one process at a time writes a run."""

import fcntl
import shutil
import signal
from pathlib import Path

from ..rows import check_rows, whole_lines
from ..trial import SMALL, Trial

TITLE = "lock conflicts: two resumes at once, held and stale locks"
COUNT = 9
SHORT = 1


def attempt(trial: Trial) -> None:
    kinds = (two_resumes, stale_lock, held_locks)
    kind = kinds[trial.number % len(kinds)]
    trial.outcome.what = kind.__name__.replace("_", " ")
    kind(trial)


def run(trial: Trial) -> tuple[object, ...]:
    return ("run", *SMALL, "--out", trial.results, "--quiet")


def two_resumes(trial: Trial) -> None:
    path = unfinished(trial)
    before = whole_lines(path)
    first, second = (trial.start("run", "--resume", path) for _ in range(2))
    codes = sorted((trial.end(first), trial.end(second)))
    trial.outcome.expect(codes in ([0, 0], [0, 4]), f"exit codes {codes}")
    check_rows(path, trial.outcome, before)


def unfinished(trial: Trial) -> Path:
    """A run that lacks two rows."""
    path = trial.results / trial.finished.name
    shutil.copytree(trial.finished, path)
    (path / "rows.jsonl").write_bytes(b"".join(whole_lines(path)[:-2]))
    return path


def stale_lock(trial: Trial) -> None:
    process = trial.start(*run(trial))
    rows = trial.random.randrange(3)
    trial.wait_until(lambda: trial.runs() and trial.rows_on_disk() >= rows, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for path in trial.runs():
        trial.complete(path)
    trial.call(*run(trial), allowed=(0,))


def held_locks(trial: Trial) -> None:
    path = unfinished(trial)
    with (path / ".lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = whole_lines(path)
        trial.call("run", "--resume", path, allowed=(4,))
        trial.outcome.expect(len(trial.said().splitlines()) == 1, "more than a line")
        trial.outcome.expect(whole_lines(path) == before, "rows changed")
    trial.complete(path)
