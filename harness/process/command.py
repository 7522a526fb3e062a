"""A command that is no worker of ours, such as git or another interpreter: it ends with this
process, and so does everything that it has started (guard.py).
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..devices.host import RUN
from .guard import END_ALL, guarded
from .guard_status import GuardStatus

PACKAGE_PARENT = Path(__file__).parents[3]
TERM_S = 2.0
SAFE_PATH = ("-P",)
"""Python imports nothing from the current folder then, where a numpy.py of the user's may be."""
LAUNCH = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    f" from {__name__} import launched; launched(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])"
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
    failed, fails = os.pipe()
    numbers = str(fails), str(os.getpid())
    launcher = [sys.executable, "-I", "-c", LAUNCH, str(PACKAGE_PARENT), *numbers]
    try:
        process = subprocess.Popen(
            [*launcher, *command],
            stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if show_errors else subprocess.PIPE,
            pass_fds=[fails],
            start_new_session=True,
            env=env,
            encoding="utf-8",
            errors="replace",
        )
    except BaseException:
        os.close(failed)
        raise
    finally:
        os.close(fails)
    with process, os.fdopen(failed) as failure:
        try:
            out, errors = process.communicate(text, timeout_s)
        except BaseException:
            end_guarded(process)
            raise
        if number := failure.read():
            raise OSError(int(number), os.strerror(int(number)), command[0])
    return subprocess.CompletedProcess([*command], process.returncode, out, errors or "")


def launched(fails: int, parent: int, command: list[str]) -> None:
    """In a new process: become the guard, and in a fork the command. `fails` gets an error."""
    guarded(parent, [fails])
    os.set_inheritable(fails, False)
    os.environ.pop(RUN, None)  # it works for no worker
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - which is what was asked for
    except OSError as error:
        os.write(fails, str(error.errno).encode())
        os._exit(127)


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
