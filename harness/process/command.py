"""A command that is no worker of ours, such as git or another interpreter: it ends with this
process, and so does everything that it has started (guard.py).
"""

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ..devices.host import RUN
from .guard import END_ALL, guarded
from .guard_status import GuardStatus

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
