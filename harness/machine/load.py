"""How much of this machine's cores other programs use, by the kernel's accounting of their time.

The load average says what was a minute ago: it calls a machine busy long after it is idle.
"""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .process_tree import descendants

PROC = Path("/proc")
LEAST_S = 0.2  # between two readings; the kernel counts in hundredths of a second
BUSY_SHARE, BUSY_CORES = 0.05, 0.4  # of the cores, at least so many: one thread then often waits
TOLD_APART = ("4", "1.5")  # beside other work, by one process, by several (docs/method.md)
NOT_BUSY = ("idle", "iowait", "guest", "guest_nice")
FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", *NOT_BUSY[2:])


class Load(NamedTuple):
    """Cores that others used, on average, of those that this process may use."""

    others: float
    cores: int

    @property
    def is_busy(self) -> bool:
        return self.others > max(BUSY_CORES, BUSY_SHARE * self.cores)

    @property
    def text(self) -> str:
        """`other programs use 1.6 of its 2 cores`."""
        return f"other programs use {min(self.others, self.cores):.1f} of its {self.cores} cores"


class LoadMeter:
    """What others use since it was made, or since `restart`."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._since_s, self._before = time.monotonic(), _seconds()

    def read(self) -> Load | None:
        """None if too little time has passed, or this system does not say."""
        passed_s, now, before = time.monotonic() - self._since_s, _seconds(), self._before
        if passed_s < LEAST_S or now is None or before is None:
            return None
        return Load(max(0.0, (now - before) / passed_s), len(os.sched_getaffinity(0)))

    def busy(self) -> Load | None:
        """What others use if that is enough to disturb; None if not, or if it is not known."""
        load = self.read()
        return load if load is not None and load.is_busy else None


def _seconds() -> float | None:
    """Processor time of others on the cores that this process may use, so far."""
    ticks = os.sysconf("SC_CLK_TCK")
    with suppress(OSError, ValueError):
        every = busy_ticks((PROC / "stat").read_text().splitlines(), os.sched_getaffinity(0))
        own = sum(map(_own_ticks, (os.getpid(), *descendants(os.getpid()))))
        return (every - own) / ticks
    return None


def busy_ticks(lines: Iterable[str], cores: Iterable[int]) -> int:
    """Of /proc/stat (proc(5)): a line `cpu3 user nice system ...` per core. What a hypervisor gave
    to others, `steal`, counts. Raises ValueError.
    """
    wanted, total = {f"cpu{core}" for core in cores}, 0
    for line in lines:
        name, *numbers = line.split()
        if name in wanted:
            known = zip(FIELDS, map(int, numbers), strict=False)
            total += sum(number for field, number in known if field not in NOT_BUSY)
    return total


def _own_ticks(pid: int) -> int:
    """Of a process and of its children that have ended; 0 if it is gone."""
    with suppress(OSError, ValueError, IndexError):
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return sum(map(int, fields[11:15]))
    return 0


def busy_text(load: Load | None, *, processes: int = 0, means: str = "") -> str:
    """What other work means for a run, before its first block; "" if there is none. `processes`: of
    the plan, if calls are timed. `means`: for what is no run.
    """
    if load is None:
        return ""
    times = f"times are told apart only from a factor of about {TOLD_APART[processes > 1]} on"
    usual = f"{times}, memory is exact" if processes else "it takes longer, memory is exact"
    wait = "Ctrl-C, then --wait-idle 10m waits until it is idle"
    return f"This machine is busy: {load.text}. If that lasts, {means or usual}; {wait}."
