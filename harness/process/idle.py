"""Waiting until a process has come to rest. OpenMP lets its idle threads spin for some time, in
case the next parallel part comes soon:

30 to 50 ms with libgomp on two busy cores, 200 ms with Intel's library (KMP_BLOCKTIME). Whoever is
measured meanwhile shares its cores.
"""

import time
from contextlib import suppress
from pathlib import Path

MOST_S = 0.5
POLL_S = 0.001
RUNNING = "R"  # proc(5), /proc/pid/stat: running, or ready to run


def wait_for_rest(pid: int, most_s: float = MOST_S) -> bool:
    """Whether every thread of the process sleeps, after waiting for it; true for one that has
    ended.
    """
    deadline_s = time.monotonic() + most_s
    while _any_runs(pid):
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(POLL_S)
    return True


def _any_runs(pid: int) -> bool:
    with suppress(OSError):  # it has ended, or there is no such file here
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                # The name of a thread stands in brackets before, and may hold anything.
                if (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[
                    0
                ] == RUNNING:
                    return True
    return False
