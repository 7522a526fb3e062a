"""How much of this machine's cores other programs use, by the kernel's accounting of their time.

The load average says what was a minute ago: it calls a machine busy long after it is idle.
"""

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ..files.errors import option

if TYPE_CHECKING:
    import psutil

LEAST_S = 0.2  # between two readings; the kernel counts in hundredths of a second
BUSY_SHARE, BUSY_CORES = 0.05, 0.4  # of the cores, at least so many: one thread then often waits
TOLD_APART = ("4", "1.5")  # beside other work, by one process, by several (docs/method.md)
BUSY = ("user", "nice", "system", "irq", "softirq", "steal")


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
    import psutil

    with suppress(OSError, IndexError, psutil.Error):
        every, this = psutil.cpu_times(percpu=True), psutil.Process()
        busy_s = sum(busy_s_of(every[core]) for core in os.sched_getaffinity(0))
        return busy_s - sum(map(_own_s, (this, *this.children(recursive=True))))
    return None


def busy_s_of(core: Any) -> float:
    """What a hypervisor gave to others, `steal`, counts; a guest's time is in `user` and `nice`."""
    return float(sum(getattr(core, name) for name in BUSY))


def _own_s(process: "psutil.Process") -> float:
    """Of a process and of its children that have ended; 0 if it is gone."""
    import psutil

    with suppress(psutil.Error):
        return sum(process.cpu_times()[:4])
    return 0.0


def busy_text(load: Load | None, *, processes: int = 0, means: str = "") -> str:
    """What other work means for a run, before its first block; "" if there is none. `processes`: of
    the plan, if calls are timed. `means`: for what is no run.
    """
    if load is None:
        return ""
    times = f"only differences above {TOLD_APART[processes > 1]}x will show"
    usual = f"{times if processes else 'the run takes longer'}; memory is exact"
    wait = f"Stop and add {option('wait_idle', '10m')} to wait for idle cores."
    return f"This machine is busy: {load.text}. If that lasts, {means or usual}. {wait}"
