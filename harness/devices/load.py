"""Who else uses this machine: how much of its cores, by the kernel's accounting of their time, and
which processes its GPU; and how many threads a run's workers take then.

The load average says what was a minute ago: it calls a machine busy long after it is idle. In a
container the driver gives the host's process numbers or none: then it is unknown whose processes
they are, and is not guessed.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..files.errors import option
from .host import descendants
from .nvml import Gpu, Reading, has_gpu

if TYPE_CHECKING:
    import psutil

THREADS = "OMP_NUM_THREADS"
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
    shows = f"only differences above {TOLD_APART[processes > 1]}x will show"
    usual = f"{shows if processes else 'the run takes longer'}; memory is exact"
    fewer = f", or use {option('threads', 1)}" if processes else ""
    stop = f"Stop and add {option('wait_idle', '10m')}{fewer}"
    return f"This machine is busy: {load.text}. If that lasts, {means or usual}. {stop}."


# ---- threads -------------------------------------------------------------------------------------


@contextmanager
def worker_threads(device: str, meta: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Workers that start meanwhile have the threads of the run that is resumed, of which `meta` is
    run.json, else as many as cores are idle now, at least one. Gives a sentence on the latter, ""
    if none were left out. Nothing is changed if the user has chosen, nor on a GPU or a `device`
    elsewhere.

    With two threads beside two busy loops on two cores 1 to 4 of quickstart's 10 pairs were
    decided, with one 10 of 10.
    """
    count, text = None, ""
    if THREADS in os.environ:
        pass
    elif meta is not None:
        count = meta["environment"].get("threads")
    elif device == "cpu" or (device == "auto" and not has_gpu()):
        meter = LoadMeter()
        time.sleep(1.5 * LEAST_S)
        if load := meter.busy():
            count = max(1, int(load.cores - load.others))
            text = (
                f"measured with {count} of {load.cores} threads because {load.text};"
                f" {option('threads', load.cores)} takes all"
            )
    if count is not None:
        os.environ[THREADS] = str(count)
    try:
        yield text
    finally:
        if count is not None:
            os.environ.pop(THREADS, None)


# ---- processes of a GPU --------------------------------------------------------------------------

FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""Linux, include/linux/proc_ns.h, PROC_PID_INIT_INO: the driver's process numbers are ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """`ours`: in this process's own tree; None if the process numbers are not this container's."""

    pid: int
    used_bytes: int | None
    ours: bool | None
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """The processes that the driver lists.

    `known`: its process numbers are ours, so the list can be believed, also if it is empty.
    """

    processes: tuple[Process, ...]
    known: bool

    @property
    def foreign(self) -> list[Process]:
        return [process for process in self.processes if process.ours is False]


def users(gpu: Gpu) -> Reading:
    """The Users of a GPU or of an instance."""
    computing = gpu.query("nvmlDeviceGetComputeRunningProcesses")
    if computing.value is None:
        return computing
    drawing = gpu.query("nvmlDeviceGetGraphicsRunningProcesses").value or []
    listed = {one.pid: one.usedGpuMemory for one in (*drawing, *computing.value)}
    known = os.getpid() in listed or in_first_namespace()
    tree = {os.getpid(), *descendants(os.getpid())}
    found = (
        Process(
            pid=pid,
            used_bytes=used,
            ours=pid in tree if known else None,
            name=name_of(pid) if known else None,
        )
        for pid, used in sorted(listed.items())
    )
    return Reading(Users(processes=tuple(found), known=known))


def in_first_namespace() -> bool:
    """Whether this process sees the process numbers of the driver: it is not in a container."""
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink()) == FIRST_PID_NAMESPACE
    return False


def name_of(pid: int) -> str | None:
    import psutil

    with suppress(psutil.Error):
        return psutil.Process(pid).name()
    return None
