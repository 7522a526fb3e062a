"""attnbench's command line in this process, with a limit: a thousand commands in minutes.

No worker is started: `--resume` gets one that refuses to do anything.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, SimpleNamespace
from typing import Any

from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench.harness.process.replies import WORKER
from attnbench.harness.process.worker_process import WorkerProcess
from attnbench.harness.run import session
from attnbench.harness.verbs import app
from attnbench.reports.pages import html, terminal  # noqa: F401 - what the verbs import

from .trial import EXIT_CODES, Trial

WORK_S = 20  # of the processor's time, however busy the machine
LIMIT_S = 90  # of one command; more is a hang
LIMITS = (
    (signal.SIGALRM, signal.ITIMER_REAL, LIMIT_S),
    (signal.SIGPROF, signal.ITIMER_PROF, WORK_S),
)


class Hangs(BaseException):
    """Nobody catches it."""


class NoWorker:
    """Says that it is a worker of the run's environment, and does nothing."""

    def __init__(self, environment: dict[str, Any]) -> None:
        facts = {"device": environment["device"], "environment": environment, "why": ""}
        self.ready = WORKER["ready"].model_validate({"op": "ready", **facts})
        self.pid, self.exit_code = os.getpid(), None

    def kill(self, *_: object, **__: object) -> None:
        pass

    close = end_requests = kill

    def ask(self, *_: object, **__: object) -> None:
        raise EnvironmentUnmet("no worker here")

    send = receive = ask


def enter(trial: Trial) -> None:
    """From now on this process stands in the try's folder and has its environment."""
    os.environ.update(trial.environment())
    os.chdir(trial.folder)


def without_workers(environment: dict[str, Any]) -> None:
    """From now on this process starts none."""

    def refused(*_: object, **__: object) -> None:
        raise EnvironmentUnmet("no worker here")

    @contextmanager
    def open_workers(device: str, *_: object, **__: object) -> Iterator[Any]:
        worker = NoWorker({**environment, "device": device})
        yield SimpleNamespace(first=worker, configure=worker.ask, close=worker.close)

    session.open_workers = open_workers  # type: ignore[assignment]
    WorkerProcess.__init__ = refused  # type: ignore[method-assign,assignment]


def call(trial: Trial, *words: object, allowed: Collection[int] = EXIT_CODES) -> bytes:
    """What a command said on stdout, with everything wrong noted in the try's outcome."""
    outcome = trial.outcome
    label = " ".join(str(word) for word in words[:2])
    begin, wrong = time.monotonic(), len(outcome.wrong)
    with captured(trial) as (out, err):
        code = run(trial, [str(word) for word in words])
    outcome.expect(code in allowed, f"exit code {code}, wanted {sorted(allowed)}")
    trial.judge(err())
    said = out()
    # stdout is no terminal here, and names of files go through a pipe as they are
    raw = [byte for byte in (b"\x1b", b"\x07") if byte in err()]
    outcome.expect(not raw, f"{raw} reach the terminal")
    spent_s = time.monotonic() - begin
    outcome.wrong[wrong:] = [f"{label} ({spent_s:.1f} s): {one}" for one in outcome.wrong[wrong:]]
    return said


def run(trial: Trial, words: list[str]) -> int:
    sys.argv = ["attnbench", *words]
    for number, timer, seconds in LIMITS:
        signal.signal(number, too_long)
        signal.setitimer(timer, seconds)
    try:
        app.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Hangs:
        trial.outcome.hangs += 1
        trial.outcome.wrong.append(
            f"still running after {LIMIT_S} s, or {WORK_S} s of work: {words[0]}"
        )
        with (trial.folder / "hang.txt").open("a", encoding="utf-8") as file:
            traceback.print_exc(limit=-8, file=file)
        return 0
    except BaseException:  # noqa: BLE001 - a user would see it
        traceback.print_exc()
    finally:
        for _, timer, _ in LIMITS:
            signal.setitimer(timer, 0)
    return 0


def too_long(_: int, __: FrameType | None) -> None:
    raise Hangs


@contextmanager
def captured(trial: Trial) -> Iterator[Any]:
    """What goes to stdout and stderr, as two functions that give it afterwards."""
    paths = [trial.folder / "in_process.out", trial.folder / "in_process.err"]
    saved = [os.dup(1), os.dup(2)]
    try:
        for fd, path in zip((1, 2), paths, strict=True):
            opened = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            os.dup2(opened, fd)
            os.close(opened)
        sys.stdout, sys.stderr = (open(fd, "w", closefd=False) for fd in (1, 2))  # noqa: SIM115
        yield [path.read_bytes for path in paths]
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        for fd, before in zip((1, 2), saved, strict=True):
            os.dup2(before, fd)
            os.close(before)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
