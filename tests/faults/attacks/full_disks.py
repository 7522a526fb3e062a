"""The disk is full, or the results folder vanishes, at any moment of a run: earlier rows are whole,
and a resume with room finishes the run.
"""

import os
import resource
import shutil
import subprocess
from collections.abc import Callable

from ..rows import whole_lines
from ..trial import SMALL, Trial

TITLE = "full disks, few descriptors, vanished folders"
COUNT = 32
SHORT = 1
EACH_FILE, TMPFS, DESCRIPTORS, VANISHED = range(4)


def attempt(trial: Trial) -> None:
    kind = trial.number % 4
    if kind == VANISHED:
        return vanish(trial)
    trial.results.mkdir()
    before, after = nothing, nothing
    if kind == TMPFS:
        size = trial.random.choice((4, 8, 16, 32, 40, 64)) << 10
        mounted = mount(trial, size)
        trial.outcome.what = f"a tmpfs of {size} bytes{'' if mounted else ' (may not be mounted)'}"
        if not mounted:
            return None
        after = lambda: remount(trial)  # noqa: E731
    elif kind == EACH_FILE:
        size = trial.random.randrange(0, 45_000)
        trial.outcome.what = f"files of at most {size} bytes"
        before = limit(resource.RLIMIT_FSIZE, size)
    else:
        size = trial.random.randrange(3, 40)
        trial.outcome.what = f"at most {size} descriptors"
        before = limit(resource.RLIMIT_NOFILE, size)
    try:
        code = trial.call(
            *("run", *SMALL, "--out", trial.results, "--quiet"), allowed=(0, 1, 2, 4), before=before
        )
        trial.outcome.expect(code == 0 or trial.said().strip(), "it failed without a word")
        trial.none_left()
        after()
        for run in trial.runs():
            trial.complete(run)
    finally:
        if kind == TMPFS:
            subprocess.run(["umount", "-l", trial.results], check=False, capture_output=True)
    return None


def vanish(trial: Trial) -> None:
    """The results folder is removed or renamed while it is written to."""
    process = trial.start("run", *SMALL, "--out", trial.results, "--quiet")
    rows = trial.random.randrange(4)
    trial.wait_until(lambda: trial.runs() and trial.rows_on_disk() >= rows, process)
    renamed = trial.folder / "renamed"
    if trial.random.random() < 0.5:
        trial.outcome.what = f"removed after row {rows}"
        shutil.rmtree(trial.results, ignore_errors=True)
        trial.end(process, (0, 1, 2))
        return
    trial.outcome.what = f"renamed after row {rows}"
    if not trial.runs():
        trial.end(process)
        return
    before = whole_lines(trial.runs()[0])
    trial.results.rename(renamed)
    trial.end(process, (0, 1, 2))
    trial.results = renamed
    (run,) = trial.runs()
    trial.outcome.expect(whole_lines(run)[: len(before)] == before, "rows changed")
    trial.complete(run)


def nothing() -> None:
    pass


def limit(what: int, size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (size, resource.getrlimit(what)[1]))


def mount(trial: Trial, size: int) -> bool:
    if os.getuid():
        return False
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", trial.results]
    return subprocess.run(words, check=False, capture_output=True).returncode == 0


def remount(trial: Trial) -> None:
    words = ["mount", "-o", "remount,size=16m", trial.results]
    subprocess.run(words, check=True, capture_output=True)
