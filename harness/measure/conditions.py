"""Under which conditions a block was measured: what else the machine did meanwhile. Read before and
after it, never inside.

Nothing is dropped because of them: a block that others disturbed is kept and flagged, and the raw
readings stand in the row.
"""

import os
import resource
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..nvml import Answer, Device, clock_event_reasons, identity, open_gpu, temperature_c

if TYPE_CHECKING:
    import torch

DISTURBED_SHARE = 0.05
"""Of a block's time: beyond it, time that our threads had to wait, or that the hypervisor took,
flags the block as contended.
"""

NVML_THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""SwPowerCap, HwSlowdown, SwThermalSlowdown, HwThermalSlowdown, HwPowerBrakeSlowdown (nvml.h,
nvmlClocksEventReasons). Idle (0x1), application clocks (0x2) and sync boost (0x10) are no trouble.
"""

Readings = dict[str, float | int]


class Conditions(Protocol):
    """Watches one block at a time. A key that cannot be read here is absent."""

    def before(self) -> None: ...

    def after(self) -> Readings: ...


class HostConditions:
    """What the kernel tells of this process and this machine (getrusage(2), proc(5), cgroup
    cpu.stat). About 0.1 ms a reading.
    """

    def __init__(self) -> None:
        self.start: Readings = {}

    def before(self) -> None:
        self.start = self._counters()

    def after(self) -> Readings:
        end = self._counters()
        # Never below 0: a thread that has just ended takes its waiting time with it.
        return {
            name: max(0, end[name] - value) for name, value in self.start.items() if name in end
        }

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
        for name, read in (
            ("waited_s", waited_s),
            ("steal_s", steal_s),
            ("throttled_s", throttled_s),
        ):
            value = read()
            if value is not None:
                counters[name] = value
        return counters


class DeviceConditions:
    """The host's conditions, and the GPU's clock, temperature and clock event reasons just after
    the block, through NVML.
    """

    def __init__(self, device: Device) -> None:
        self.host = HostConditions()
        self.gpu = open_gpu(device).value

    def before(self) -> None:
        self.host.before()

    def after(self) -> Readings:
        readings = (
            self._gpu() if self.gpu else {}
        )  # first: the clock falls as soon as the GPU is idle
        return {**self.host.after(), **readings}

    def _gpu(self) -> Readings:
        answers: dict[str, Answer] = {
            "sm_clock_mhz": self.gpu.board.ask(
                "nvmlDeviceGetClockInfo", self.gpu.nvml.NVML_CLOCK_SM
            ),
            "temperature_c": temperature_c(self.gpu),
            "clock_event_reasons": clock_event_reasons(self.gpu),
        }
        return {
            name: int(answer.value) for name, answer in answers.items() if answer.value is not None
        }


def conditions_for(device: "torch.device") -> Conditions:
    return DeviceConditions(identity(device)) if device.type == "cuda" else HostConditions()


def contended(readings: Mapping[str, Any]) -> bool | None:
    """Others wanted the same cores: our threads stood in the queue, or the hypervisor ran somebody
    else. None where nothing tells.
    """
    lost = [readings[name] for name in ("waited_s", "steal_s") if name in readings]
    return sum(lost) > DISTURBED_SHARE * readings["wall_s"] if lost else None


def throttled(readings: Mapping[str, Any]) -> bool | None:
    """The processor was held back: the control group's CPU quota was used up, or the GPU lowered
    its clock for power or heat. None where nothing tells."""
    held = readings.get("throttled_s"), readings.get("clock_event_reasons")
    return (
        None
        if held == (None, None)
        else (held[0] or 0) > 0 or bool(int(held[1] or 0) & NVML_THROTTLED)
    )


def flagged(verdicts: Iterable[bool | None]) -> int | None:
    """How many blocks were flagged; None where no block could be judged."""
    known = [verdict for verdict in verdicts if verdict is not None]
    return sum(known) if known else None


def waited_s() -> float | None:
    """Seconds for which threads of this process were ready to run and did not (schedstat, second
    number, in ns).
    """
    total = 0
    try:
        for thread in Path("/proc/self/task").iterdir():
            with suppress(FileNotFoundError):  # it has just ended
                total += int((thread / "schedstat").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return total / 1e9


def steal_s() -> float | None:
    """Seconds, summed over the cores, in which the hypervisor ran something else (/proc/stat,
    eighth number, in ticks).
    """
    with suppress(OSError, ValueError, IndexError), Path("/proc/stat").open("rb") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
    return None


def throttled_s() -> float | None:
    """Seconds for which the CPU quota of our control group held its threads back (cpu.stat of
    cgroup v2, or of v1).
    """
    for path, field, unit in CPU_STAT:
        with suppress(OSError, ValueError):
            for line in Path(path).read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == field:
                    return int(value) / unit
    return None


CPU_STAT = (
    ("/sys/fs/cgroup/cpu.stat", "throttled_usec", 1e6),
    ("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time", 1e9),
)
