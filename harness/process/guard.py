"""The process between a run and a worker: it ends whatever the worker leaves behind.

What a worker starts can leave its process group and its session and drop its environment, but not
its ancestors: orphans become children of the nearest subreaper (prctl(2)). The guard is one, so it
finds them all, also after the run was killed with SIGKILL. The worker is its fork, made before it
imports anything more; the guard imports nothing, and ends with the worker, in the same way.
"""

import ctypes
import os
import resource
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..devices.host import descendants

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # prctl(2)
END_ALL = signal.SIGUSR1
"""Tells a guard to kill everything below it at once. SIGTERM is passed on to the worker."""
PARENT_DIED = signal.SIGCONT
"""If so: it arrives, and is waited for, even where the guard was stopped."""
WATCHED = (signal.SIGCHLD, signal.SIGTERM, PARENT_DIED, END_ALL)
GIVE_UP_S = 5.0  # a process that cannot be killed (another user's, or stuck in a driver) is left
AGAIN_S = 0.05
AUTOGROUP, AUTOGROUP_TRIES = Path("/proc/self/autogroup"), 20


def guarded(parent: int, fds: Iterable[int], status_fd: int | None = None) -> None:
    """Return in a new process, the worker; this one becomes its guard and never returns.

    `parent`: the process that started this one, whose end is the worker's. `fds`: those of the
    worker only. `status_fd`: the worker tells the guard's number and its own there, the guard at
    the end how the worker ended (GuardStatus).
    """
    pass_on_nice()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it were ignored, no status would be kept
    before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal_at_end_of(parent, PARENT_DIED)
    guard, worker = os.getpid(), os.fork()
    if worker == 0:
        os.setpgid(0, 0)  # a signal to the worker's group is not for its guard
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal_at_end_of(guard, signal.SIGKILL)
        if status_fd is not None:
            if not _told(status_fd, f"{guard} {os.getpid()} "):
                os._exit(1)
            os.close(status_fd)
        return
    for fd in fds:
        os.close(fd)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    status = _watch(worker, parent)
    _told(status_fd, f"{os.waitstatus_to_exitcode(status)}\n")
    _end_as(status)


def pass_on_nice() -> None:
    """A session of its own is a group of its own for the scheduler (sched(7), autogroup), and the
    nice value of a process counts within its group alone: give the group that value.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    for _ in range(AUTOGROUP_TRIES if nice else 0):
        try:
            AUTOGROUP.write_text(f"{nice}")
            return
        except BlockingIOError:  # the kernel takes one of these in a tenth of a second
            time.sleep(0.1)
        except OSError:
            return


def signal_at_end_of(parent: int, number: int) -> None:
    """Have the kernel send us a signal when our parent, or its thread that started us, ends.

    End now if it died before.
    """
    prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


# ---- in the guard --------------------------------------------------------------------------------


def _told(status_fd: int | None, words: str) -> bool:
    """Whether anybody listens: a run may have given a worker up before it began."""
    try:
        return status_fd is None or os.write(status_fd, words.encode()) > 0
    except BrokenPipeError:
        return False


def _watch(worker: int, parent: int) -> int:
    """Wait until the worker has ended, end the rest, and return the worker's status."""
    status: int | None = None
    while status is None:
        number = signal.sigwait(WATCHED)
        if number == signal.SIGTERM:
            with suppress(ProcessLookupError):
                os.killpg(worker, signal.SIGTERM)
        elif number == END_ALL or os.getppid() != parent:
            break
        status = _reap(worker)[1]
    deadline = time.monotonic() + GIVE_UP_S
    while True:
        for pid in descendants(os.getpid()):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        left, found = _reap(worker)
        status = found if status is None else status
        if not left or time.monotonic() > deadline:
            return signal.SIGKILL if status is None else status
        signal.sigtimedwait([signal.SIGCHLD], AGAIN_S)


def _reap(worker: int) -> tuple[bool, int | None]:
    """Whether children are left, and the worker's status if it has ended now."""
    status: int | None = None
    while True:
        try:
            pid, found = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False, status
        if pid == 0:
            return True, status
        if pid == worker:
            status = found


def _end_as(status: int) -> None:
    """End with the worker's exit code, or by the signal that ended it."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the worker wrote its own
        with suppress(OSError, ValueError):  # SIGKILL has no other handler
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)
