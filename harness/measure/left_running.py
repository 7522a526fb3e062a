"""Threads and processes that backends have started: do they rest while nobody calls their backend?

Whoever shares the machine with them would be slower. Thread pools spin for a while after their
work, in case more comes soon (process/idle.py): they are waited for. Linux only.
"""

import time
from contextlib import suppress
from pathlib import Path

from ..cases.case import Case
from ..process.idle import RUNNING

PROC = Path("/proc")
OWN_THREADS = PROC / "self/task"
THREAD_REST_S = 1.0  # Intel's OpenMP spins for 0.2 s
PROCESS_REST_S = 8.0  # one that helps to compile imports for seconds
LOOK_S = 0.05
WORKING_SHARE = 0.1  # of a core, in one look


class LeftRunning:
    """Those that exist when it is made are ours."""

    def __init__(self) -> None:
        self._owners: dict[Path, Case | None] = dict.fromkeys(_tasks())

    def note(self, case: Case) -> None:
        """What has been started since the last call belongs to this case."""
        self._owners = {task: self._owners.get(task, case) for task in _tasks()}

    def forget(self) -> None:
        """What is left belongs to no case any more."""
        self._owners = dict.fromkeys(self._owners)

    @property
    def owners(self) -> list[Case]:
        return list({case.id: case for case in self._owners.values() if case}.values())

    def working(self, case: Case) -> str:
        """Why it is an error that a case's threads or processes do not come to rest; "" if they do.

        Call it while none of the cases runs.
        """
        watched = [task for task, owner in self._owners.items() if owner and owner.id == case.id]
        if not any(map(_runs, watched)):
            return ""
        begun_s = now_s = time.monotonic()
        while watched and now_s - begun_s < max(map(_rest_s, watched)):
            before = {task: used_s(task) for task in watched}
            time.sleep(LOOK_S)
            since_s, now_s = now_s, time.monotonic()
            share_s = WORKING_SHARE * (now_s - since_s)
            watched = [task for task in watched if used_s(task) - before[task] > share_s]
        if not watched:
            return ""
        what = "a thread" if watched[0].parent == OWN_THREADS else "a process"
        return (
            f"{what} that it started still works {now_s - begun_s:.1g} s after its call, beside"
            " others' calls"
        )


def used_s(task: Path) -> float:
    """Processor time of a thread, or of a process's first; 0 for one that has ended."""
    with suppress(OSError, ValueError, IndexError):
        return int((task / "schedstat").read_bytes().split()[0]) / 1e9
    return 0.0


def _tasks() -> list[Path]:
    """Our threads, and the processes that they have started."""
    found: list[Path] = []
    with suppress(OSError):
        for thread in OWN_THREADS.iterdir():
            found.append(thread)
            with suppress(OSError):
                children = (thread / "children").read_text().split()
                found += (PROC / child for child in children)
    return found


def _rest_s(task: Path) -> float:
    """How long it may go on."""
    return THREAD_REST_S if task.parent == OWN_THREADS else PROCESS_REST_S


def _runs(task: Path) -> bool:
    with suppress(OSError, IndexError):
        # The name stands in brackets before the state and may hold anything.
        return (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] == RUNNING
    return False
