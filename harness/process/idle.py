"""Wait until all threads of a process sleep.

OpenMP threads keep spinning after a parallel region, in case the next one comes soon: 30 to 50 ms
with libgomp on two busy cores, 200 ms with Intel's library (KMP_BLOCKTIME). A measurement in
another process would share its cores with them.
"""

import time
from contextlib import suppress
from pathlib import Path

MOST_S = 0.5
POLL_S = 0.001
RUNNING = "R"  # proc(5), /proc/pid/stat: running, or ready to run


def wait_until_idle(pid: int, most_s: float = MOST_S) -> bool:
    """Whether every thread sleeps at the end of the wait; True for a process that has ended."""
    deadline_s = time.monotonic() + most_s
    while _any_runs(pid):
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(POLL_S)
    return True


def _any_runs(pid: int) -> bool:
    with suppress(OSError):  # it has ended, or this system has no such file
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                stat = (task / "stat").read_text(errors="replace")
                # The thread's name stands in brackets before the state and may hold anything.
                if stat.rpartition(")")[2].split()[0] == RUNNING:
                    return True
    return False
