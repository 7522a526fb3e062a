"""A command that is no worker of ours, such as git or another interpreter, and what a run knows of
the guard (guard.py) of it or of a worker: both end with this process, and so does everything that
they have started.
"""

import errno
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ..devices.host import RUN, descendants
from .guard import END_ALL, guarded

REAPED_S = 1.0  # a guard has told how its worker ended just before its own end


class GuardStatus:
    """With the methods of subprocess.Popen. `started`: the guard, if this process has started it.

    A guard that has ended keeps its number until `close`, or until the run asks the fork server for
    another: no other process has it.
    """

    def __init__(self, fd: int, started: "subprocess.Popen[bytes] | None") -> None:
        self.fd = fd
        self._started = started
        self._told = b""

    @property
    def _numbers(self) -> list[int]:
        """The guard's and the worker's; before that has begun, the guard's or none."""
        self.poll()
        return [*map(int, self._told.split()[:2])] or [one.pid for one in [self._started] if one]

    @property
    def pid(self) -> int | None:
        """The worker's; its guard's, or None, before it has begun."""
        return next(reversed(self._numbers), None)

    def poll(self) -> int | None:
        """The worker's exit code, -N if signal N ended it; None while its guard lives."""
        while self.fd >= 0 and select.select([self.fd], [], [], 0)[0]:
            told = os.read(self.fd, 100)
            self._told += told
            if not told:
                os.close(self.fd)
                self.fd = -1
        if self._told.endswith(b"\n"):
            return int(self._told.split()[-1])
        if self.fd >= 0:
            return None
        return self._started.wait() if self._started else -signal.SIGKILL

    def wait(self, timeout_s: float) -> int:
        """Raises subprocess.TimeoutExpired."""
        deadline_s = time.monotonic() + timeout_s
        while (code := self.poll()) is None:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired("a worker", timeout_s)
            select.select([self.fd], [], [], left_s)
        return code

    def send_signal(self, number: int) -> None:
        """Nothing if the guard has ended or has not begun."""
        self._send(self._numbers[:1], number)

    def signal_all(self, number: int) -> None:
        """To the worker and all that it has started, also what has left it."""
        self._send([pid for guard in self._numbers[:1] for pid in descendants(guard)], number)

    def _send(self, pids: list[int], number: int) -> None:
        for pid in pids if self.poll() is None else ():
            with suppress(OSError):
                os.kill(pid, number)

    def close(self) -> None:
        """Safe to call twice."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1
        if self._started:
            with suppress(subprocess.TimeoutExpired):
                self._started.wait(REAPED_S)


PACKAGE_PARENT = Path(__file__).parents[3]
TERM_S = 2.0
GIT_S = 10.0
SAFE_PATH = ("-P",)
"""Python imports nothing from the current folder then, where a numpy.py of the user's may be."""
LAUNCH = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    f" from {__name__} import launched; launched(int(sys.argv[2]), sys.argv[3:])"
)


def run_command(
    command: Sequence[str],
    *,
    text: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    show_errors: bool = False,
) -> subprocess.CompletedProcess[str]:
    """What it printed, and its exit code, -N if signal N ended it; `text` is its standard input.

    `show_errors`: its standard error is ours. Raises OSError if it does not run, and
    subprocess.TimeoutExpired; it is ended then, as by any exception.
    """
    env = os.environ if env is None else env
    if shutil.which(command[0], path=env.get("PATH")) is None:
        number = errno.EACCES if Path(command[0]).exists() else errno.ENOENT
        raise OSError(number, os.strerror(number), command[0])
    launcher = [sys.executable, "-I", "-c", LAUNCH, str(PACKAGE_PARENT), str(os.getpid())]
    with subprocess.Popen(
        [*launcher, *command],
        stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if show_errors else subprocess.PIPE,
        start_new_session=True,
        env={name: value for name, value in env.items() if name != RUN},  # it works for no worker
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            out, errors = process.communicate(text, timeout_s)
        except BaseException:
            end_guarded(process)
            raise
    return subprocess.CompletedProcess([*command], process.returncode, out, errors or "")


@cache
def git_commit() -> str | None:
    """The commit of this package's checkout; None if it is not a checkout."""
    here = Path(__file__).resolve().parents[2]
    if (here / ".git").exists():
        with suppress(OSError, subprocess.TimeoutExpired):
            git = ["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"]
            return run_command(git, timeout_s=GIT_S).stdout.strip() or None
    return None


def launched(parent: int, command: list[str]) -> None:
    """In a new process: become the guard, and in a fork the command."""
    guarded(parent, ())
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)  # noqa: S606 - which is what was asked for


def end_guarded(process: "subprocess.Popen[Any] | GuardStatus", term_s: float = TERM_S) -> None:
    """End a guard with all below it: SIGTERM, then after at most `term_s` SIGKILL."""
    for number, wait_s in (
        (signal.SIGTERM, term_s),
        (END_ALL, TERM_S),
        (signal.SIGKILL, TERM_S),  # a guard that does not answer; what it guards dies with it
    ):
        if wait_s:
            process.send_signal(number)  # nothing if it has ended
            process.send_signal(signal.SIGCONT)  # somebody may have stopped it
            with suppress(subprocess.TimeoutExpired):
                process.wait(wait_s)
