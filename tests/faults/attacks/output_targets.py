"""A file that `-o` names has its old content or the new, though the disk is full or attnbench dies.

What is no regular file is in tests/harness/files/test_safe_files.py and tests/harness/verbs.
"""

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

from ..dies_at_step import Steps
from ..in_process import enter, run
from ..trial import Trial

TITLE = "output to full disks; killed while writing"
COUNT = 40
SHORT = 2
OLD = b"the old content"


def attempt(trial: Trial) -> None:
    enter(trial)
    commands = (
        ("show", trial.finished, "--format", "html", "-o"),
        ("show", trial.finished, "--format", "md", "-o"),
        ("show", trial.finished, "--format", "csv", "-o"),
        ("show", trial.finished, "--format", "json", "-o"),
        ("show", trial.finished, "--format", "parquet", "-o"),
    )
    words = trial.random.choice(commands)
    target = (small, dies)[trial.number % 2]
    trial.outcome.what = f"{' '.join(map(str, words[::2]))} {target.__name__}"
    path = trial.folder / "there" / "target"
    path.parent.mkdir()
    target(trial, words, path)
    debris = [one.name for one in path.parent.iterdir() if one.name.startswith(".")]
    trial.outcome.expect(not debris or target is dies, f"left behind: {debris}")


Words = tuple[object, ...]


def small(trial: Trial, words: Words, path: Path) -> None:
    """A disk that is full before the end: the old content stays."""
    path.write_bytes(OLD)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (trial.random.randrange(200), hard))
    try:
        in_child(trial, lambda: run(trial, [*map(str, words), str(path)]), (1, 2, 4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    trial.outcome.expect(path.read_bytes() == OLD, "the old content is gone")


def dies(trial: Trial, words: Words, path: Path) -> None:
    path.write_bytes(OLD)
    step, most_bytes = trial.random.randint(1, 8), trial.random.randrange(10_000)

    def killed() -> int:
        Steps(step, signal.SIGKILL, most_bytes, str(path.parent)).install()
        return run(trial, [*map(str, words), str(path)])

    in_child(trial, killed, (0, -signal.SIGKILL))
    after = path.read_bytes()
    whole = after == OLD or (len(after) > 200 and after[:5] != OLD[:5])
    trial.outcome.expect(whole, "neither the old content nor the new")


def in_child(trial: Trial, work: Callable[[], int], allowed: tuple[int, ...]) -> None:
    if (pid := os.fork()) == 0:
        with open(os.devnull, "wb") as quiet:  # noqa: PTH123
            os.dup2(quiet.fileno(), 1)
            os.dup2(quiet.fileno(), 2)
        os._exit(work())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    trial.outcome.expect(code in allowed, f"exit code {code}, wanted one of {allowed}")
