"""What else the machine did while a block was measured: read before and after it, never inside.

A block is flagged, or measured again, by these readings alone, never by how long its calls took.
"""

import os
import resource
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from ..devices.host import waited_s
from ..devices.nvml import (
    Device,
    Gpu,
    clock_event_mask,
    nvml_device,
    open_gpu,
    sm_clock_mhz,
    temperature_c,
)

if TYPE_CHECKING:
    import torch

    from .clock import Between
    from .sm_stamps import SmStamps


OWN_THREADS = Path("/proc/self/task")
CONTENDED_SHARE = 0.05
"""Of a block's time: if threads waited, or the hypervisor took, more than this, it is contended."""

READY_SHARE = 0.8
"""Of a block's time: if no thread wanted to run for longer than the rest, calls slept."""

NVML_THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""SwPowerCap, HwSlowdown, SwThermalSlowdown, HwThermalSlowdown, HwPowerBrakeSlowdown (nvml.h,
nvmlClocksEventReasons). Idle (0x1), application clocks (0x2) and sync boost (0x10) do no harm.
"""
GPU_SLOWED = NVML_THROTTLED & ~0x4
"""Without SwPowerCap, which 123 of 134 blocks of long work on an H200 had at 98 % of its clock."""
LEAST_CLOCK_RATIO = 0.75
"""Of the median clock of a process's blocks, as in nvbench: below it the GPU was held back."""
CPU_STAT = (
    ("/sys/fs/cgroup/cpu.stat", "throttled_usec", 1e6),
    ("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time", 1e9),
)
"""cgroup v2 and v1: file, field, units per second."""

Readings = dict[str, float | int]


class HostConditions:
    """Watches one block at a time by the kernel's counters of this process and machine; about
    0.1 ms a reading. A key that cannot be read here is absent.

    Sources: getrusage(2), proc(5), cgroup cpu.stat.
    """

    def __init__(self) -> None:
        self.start: Readings = {}

    def before(self) -> None:
        self.start = self._counters()

    def during(self, between: "Between") -> "Between":
        """In place of `between`, which a block calls outside of timed calls."""
        return between

    def after(self) -> Readings:
        end = self._counters()
        # Never below 0: a thread that has just ended takes its waiting time with it.
        return {n: max(0, end[n] - value) for n, value in self.start.items() if n in end}

    def _counters(self) -> Readings:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        counters: Readings = {
            "wall_s": time.perf_counter(),
            "user_s": usage.ru_utime,
            "system_s": usage.ru_stime,
            "minor_faults": usage.ru_minflt,
            "major_faults": usage.ru_majflt,
            "involuntary_switches": usage.ru_nivcsw,
        }
        further = {
            "waited_s": waited_s(OWN_THREADS.glob("*")),
            "steal_s": steal_s(),
            "throttled_s": throttled_s(),
        }
        return counters | {name: value for name, value in further.items() if value is not None}


class DeviceConditions(HostConditions):
    """The host's conditions; the GPU's mean clock during the block, and its share of the median of
    the blocks so far; and its temperature and clock events after it.

    By `stamps` of the multiprocessors' own counters; without them by NVML, within the block.
    """

    def __init__(self, device: Device, stamps: "SmStamps | None" = None) -> None:
        super().__init__()
        self.gpu: Gpu | None = open_gpu(device).value
        self.stamps = stamps
        self.clocks_mhz: list[float] = []  # of all blocks
        self._within_mhz: list[float] = []

    def before(self) -> None:
        self._within_mhz = []
        self._stamp = self.stamps.take() if self.stamps else None
        super().before()

    def during(self, between: "Between") -> "Between":
        if self.gpu is None or self.stamps is not None:
            return between
        gpu = self.gpu

        def look_at_clock(*, last: bool) -> None:
            if last and (clock_mhz := sm_clock_mhz(gpu).value) is not None:
                self._within_mhz.append(clock_mhz)
            between(last=last)

        return look_at_clock

    def after(self) -> Readings:
        readings = gpu_conditions(self.gpu) if self.gpu else {}  # first: an idle GPU clocks down
        clock_mhz = self._mean_clock_mhz()
        if clock_mhz is not None:
            self.clocks_mhz.append(clock_mhz)
            readings["sm_clock_mhz"] = round(clock_mhz, 1)
            readings["sm_clock_ratio"] = clock_mhz / median(self.clocks_mhz)
        return super().after() | readings

    def _mean_clock_mhz(self) -> float | None:
        if self.stamps is not None and self._stamp is not None:
            from .sm_stamps import mean_mhz

            return mean_mhz(self._stamp, self.stamps.take())
        return fmean(self._within_mhz) if self._within_mhz else None


def gpu_conditions(gpu: Gpu) -> Readings:
    found = {"temperature_c": temperature_c(gpu), "clock_event_reasons": clock_event_mask(gpu)}
    return {name: int(one.value) for name, one in found.items() if one.value is not None}


def conditions_for(device: "torch.device") -> HostConditions:
    if device.type != "cuda":
        return HostConditions()
    stamps = None  # where Triton is not installed, or cannot launch a kernel
    with suppress(ImportError):
        from .sm_stamps import FAILURES, SmStamps

        with suppress(*FAILURES):
            stamps = SmStamps(device)
    return DeviceConditions(nvml_device(device), stamps)


def contended(readings: Mapping[str, Any]) -> bool | None:
    """Whether others wanted the same cores; None if unknown.

    Our threads waited in the queue, or the hypervisor ran something else. Blocks whose threads were
    kept from spinning, because others had wanted the cores, count too: their calls take longer.
    """
    if readings.get("short_waits"):
        return True
    lost = [readings[name] for name in ("waited_s", "steal_s") if name in readings]
    return sum(lost) > CONTENDED_SHARE * readings["wall_s"] if lost else None


def always_ready(readings: Mapping[str, Any]) -> bool:
    """Whether some thread ran, or waited for a core, nearly all the time; a sleep is not work."""
    names = ("user_s", "system_s", "waited_s")
    ready_s = sum(readings.get(name, 0.0) for name in names)
    return float(ready_s) >= READY_SHARE * float(readings["wall_s"])


def throttled(readings: Mapping[str, Any]) -> bool | None:
    """Whether the processor was held back; None if unknown.

    The control group's CPU quota was used up; the GPU's mean clock was below LEAST_CLOCK_RATIO of
    its median; or heat or the power supply held it down at the end of the block.
    """
    quota_s, reasons = readings.get("throttled_s"), readings.get("clock_event_reasons")
    if quota_s is None and reasons is None and "sm_clock_ratio" not in readings:
        return None
    was_slowed = bool(int(reasons or 0) & GPU_SLOWED)
    return (quota_s or 0) > 0 or was_slowed or has_low_clock(readings)


def has_low_clock(readings: Mapping[str, Any]) -> bool:
    return float(readings.get("sm_clock_ratio", 1.0)) < LEAST_CLOCK_RATIO


def count_flagged(flags: Iterable[int | None]) -> int | None:
    """How many blocks, or calls of them, are flagged; None if all are unknown."""
    known = [flag for flag in flags if flag is not None]
    return sum(known) if known else None


def steal_s() -> float | None:
    """Seconds, summed over the cores, in which the hypervisor ran something else.

    The eighth number of the first line of /proc/stat, in ticks.
    """
    with suppress(OSError, ValueError, IndexError), Path("/proc/stat").open("rb") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
    return None


def throttled_s() -> float | None:
    """Seconds for which the CPU quota of our control group held its threads back."""
    for path, field, unit in CPU_STAT:
        with suppress(OSError, ValueError):
            for line in Path(path).read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == field:
                    return int(value) / unit
    return None


# ---- flags of a row whose GPU timings deserve a doubt --------------------------------------------
# Set by the parent process, which imports no torch.

UNSEEN_RATIO = 1.5
"""Of the time between the events: `block_ms` starts from a cold L2, the wall clock's calls do not,
so the wall clock's share of the device is the smaller one.
"""
UNSEEN_MS = 0.2  # waking the host after the last kernel, and the clock's own two waits
NOT_CAPTURED = "cannot be captured"  # how a `graph_reason` begins if capturing was tried


def add_floor(fields: dict[str, Any], event: Mapping[str, Any]) -> None:
    """Keep the lowest of all warm-ups: every process and every new start measures them again."""
    for name in ("launch_ms", "shortest_call_ms"):
        known = [value for value in (fields.get(name), event.get(name)) if value is not None]
        fields[name] = min(known, default=None)


def launch_flags(row: Mapping[str, Any]) -> dict[str, Any]:
    """`late_calls`, `graph_failed` and `unseen_work` of a row with samples; null on a CPU."""
    reason = row.get("graph_reason")
    blocks = (block for process in row.get("conditions") or () for block in process)
    return {
        "late_calls": count_flagged(block.get("late_calls") for block in blocks),
        "graph_failed": None if reason is None else reason.startswith(NOT_CAPTURED),
        "unseen_work": _unseen_work(row),
    }


def _unseen_work(row: Mapping[str, Any]) -> bool | None:
    """Whether the wall clock waited for much more than launching and what the events enclose."""
    wall, block = (_typical(row, name) for name in ("wall_block_ms", "block_ms"))
    launch = row.get("launch_ms")
    if wall is None or block is None or launch is None:
        return None
    return bool(wall - launch > UNSEEN_RATIO * block + UNSEEN_MS)


def _typical(row: Mapping[str, Any], name: str) -> float | None:
    blocks = [median(block) for process in row.get(name) or () for block in process if block]
    return median(blocks) if blocks else None
