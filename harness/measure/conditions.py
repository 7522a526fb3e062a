"""What else the machine did while a block was measured: read before and after it, never inside.

A block is flagged, or measured again, by these readings alone, never by how long its calls took.
"""

import os
import resource
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..machine.cpu import waited_s
from ..machine.nvml import (
    Device,
    Gpu,
    clock_event_mask,
    nvml_device,
    open_gpu,
    sm_clock_mhz,
    temperature_c,
)
from ..machine.nvml import (
    throttled_s as gpu_throttled_s,
)

if TYPE_CHECKING:
    import torch

OWN_THREADS = Path("/proc/self/task")
CONTENDED_SHARE = 0.05
"""Of a block's time: if threads waited, or the hypervisor took, more than this, it is contended."""

READY_SHARE = 0.8
"""Of a block's time: if no thread wanted to run for longer than the rest, calls slept."""

NVML_THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""SwPowerCap, HwSlowdown, SwThermalSlowdown, HwThermalSlowdown, HwPowerBrakeSlowdown (nvml.h,
nvmlClocksEventReasons). Idle (0x1), application clocks (0x2) and sync boost (0x10) do no harm.
"""
BY_GPU = ("power_throttled_s", "thermal_throttled_s")
HELD_SHARE = 0.01
"""Of a block's time: if the GPU's clocks were held down for longer, it is throttled."""
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
    """The host's conditions; for how long the GPU's clocks were held down during the block; and its
    clock, temperature and clock events after it.
    """

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.gpu: Gpu | None = open_gpu(device).value

    def after(self) -> Readings:
        readings = gpu_conditions(self.gpu) if self.gpu else {}  # first: an idle GPU clocks down
        return super().after() | readings

    def _counters(self) -> Readings:
        counters = super()._counters()
        held = gpu_throttled_s(self.gpu, BY_GPU) if self.gpu else {}
        return counters | {name: one.value for name, one in held.items() if one.value is not None}


def gpu_conditions(gpu: Gpu) -> Readings:
    found = {
        "sm_clock_mhz": sm_clock_mhz(gpu),
        "temperature_c": temperature_c(gpu),
        "clock_event_reasons": clock_event_mask(gpu),
    }
    return {name: int(one.value) for name, one in found.items() if one.value is not None}


def conditions_for(device: "torch.device") -> HostConditions:
    return DeviceConditions(nvml_device(device)) if device.type == "cuda" else HostConditions()


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

    The control group's CPU quota was used up, or the GPU lowered its clock for power or heat, at
    the end of the block or by its counters during more than HELD_SHARE of it.
    """
    quota_s, reasons = readings.get("throttled_s"), readings.get("clock_event_reasons")
    held = [readings[name] for name in BY_GPU if name in readings]
    if quota_s is None and reasons is None and not held:
        return None
    was_held = bool(held) and sum(held) > HELD_SHARE * readings["wall_s"]
    return (quota_s or 0) > 0 or bool(int(reasons or 0) & NVML_THROTTLED) or was_held


def count_flagged(flags: Iterable[bool | None]) -> int | None:
    """How many blocks are flagged; None if all are unknown."""
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
