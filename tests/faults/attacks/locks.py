"""Two runs at once, locks that are held, stale, or no files: one run at a time uses the device, and
nobody's file is overwritten.
"""

import fcntl
import os
import shutil
import signal
from pathlib import Path

from ..rows import check_rows, whole_lines
from ..trial import SMALL, Trial

TITLE = "lock conflicts: two runs or resumes at once, held, stale and odd locks"
COUNT = 18
SHORT = 1


def attempt(trial: Trial) -> None:
    kinds = (two_runs, waiting_runs, two_resumes, stale_lock, held_locks, odd_locks)
    kind = kinds[trial.number % len(kinds)]
    trial.outcome.what = kind.__name__.replace("_", " ")
    kind(trial)


def run(trial: Trial) -> tuple[object, ...]:
    return ("run", *SMALL, "--out", trial.results, "--quiet")


def two_runs(trial: Trial) -> None:
    first, second = trial.start(*run(trial)), trial.start(*run(trial))
    codes = sorted((trial.end(first), trial.end(second)))
    trial.outcome.expect(codes in ([0, 0], [0, 4]), f"exit codes {codes}")
    trial.outcome.expect(len(trial.runs()) == codes.count(0), f"{len(trial.runs())} runs")
    for path in trial.runs():
        check_rows(path, trial.outcome)


def waiting_runs(trial: Trial) -> None:
    started = [trial.start(*run(trial), "--wait") for _ in range(2)]
    for process in started:
        trial.end(process, (0,))
    trial.outcome.expect(len(trial.runs()) == 2, f"{len(trial.runs())} runs")
    for path in trial.runs():
        check_rows(path, trial.outcome)


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


def odd_locks(trial: Trial) -> None:
    """Something of another user stands where locks are."""
    victim, there = trial.folder / "victim", trial.folder / "locks" / "attnbench-0-cpu"
    victim.write_text("mine", encoding="utf-8")
    there = there.with_name(f"attnbench-{os.getuid()}-cpu")
    way = trial.random.choice(("link", "pid link", "folder", "FIFO", "no folder", "a file"))
    trial.outcome.what += f": {way}"
    lock, pid = there.with_suffix(".lock"), there.with_suffix(".pid")
    if way == "link":
        lock.symlink_to(victim)
    elif way == "pid link":
        pid.symlink_to(victim)
    elif way == "folder":
        lock.mkdir()
    elif way == "FIFO":
        os.mkfifo(lock)
    elif way == "no folder":
        there.parent.rmdir()
    else:
        there.parent.rmdir()
        there.parent.write_text("", encoding="utf-8")
    trial.call(*run(trial), allowed=(0, 4))
    trial.outcome.expect(trial.said("out") or trial.said(), "no run, and no reason")
    trial.outcome.expect(victim.read_text(encoding="utf-8") == "mine", "the victim was changed")
    for path in trial.runs():
        check_rows(path, trial.outcome)
