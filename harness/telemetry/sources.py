"""What the sampler reads: a GPU through NVML, or the host through psutil.
psutil.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import psutil

from ..nvml import Answer, Device, Gpu, clock_event_reasons, open_gpu, temperature_c, used_bytes

# 5 Hz: power is an average of up to 1 s, utilization of 1/6 s and more; more often would tell
# little more
PERIOD_S = 0.2
PERIOD_NS = int(PERIOD_S * 1e9)
# of processor time for one reading of the cores' clocks, half of what a sample may take: 1 % of
# PERIOD_S
MOST_CLOCK_S = 1e-3

Readings = dict[str, Answer]


class Source(Protocol):
    """What is sampled. `header` says so in the file; `lead_ns` passes between a go and its first
    sample.
    """

    header: Mapping[str, Any]
    lead_ns: int

    def begin(self, pids: Iterable[int]) -> None: ...

    def read(self) -> Readings: ...


GPU_READINGS: dict[str, Callable[[Gpu], Answer]] = {
    "sm_clock_mhz": lambda gpu: gpu.board.ask("nvmlDeviceGetClockInfo", gpu.nvml.NVML_CLOCK_SM),
    "memory_clock_mhz": lambda gpu: gpu.board.ask(
        "nvmlDeviceGetClockInfo", gpu.nvml.NVML_CLOCK_MEM
    ),
    "temperature_c": temperature_c,
    "power_w": lambda gpu: converted(
        gpu.board.ask("nvmlDeviceGetPowerUsage"), lambda power_mw: power_mw / 1000
    ),
    "clock_event_mask": clock_event_reasons,
    "device_used_bytes": used_bytes,
    "kernel_busy_ratio": lambda gpu: converted(
        gpu.ask("nvmlDeviceGetUtilizationRates"), lambda percent: percent.gpu / 100
    ),
}
OF_THE_BOARD = ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "clock_event_mask")


class GpuSource:
    """A GPU as NVML sees it. It gets a core of its own as far as there is one: a wake-up must not
    move the thread that launches kernels.
    """

    lead_ns = 0

    def __init__(self, uuid: str) -> None:
        with suppress(OSError):  # a sandbox may forbid it
            cores = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {max(cores)} if len(cores) > 1 else cores)
        # Not niced: a late sample is a wrong one, and outside of latency windows 1 % of a core is
        # in nobody's way.
        self.gpu: Gpu | None
        self.gpu, self.reason = open_gpu(Device(uuid=uuid))
        shared = self.gpu is not None and self.gpu.board is not self.gpu
        self.header: Mapping[str, Any] = {
            "kind": "gpu",
            "uuid": uuid,
            "period_s": PERIOD_S,
            "board_wide": list(OF_THE_BOARD) if shared else [],
        }

    def begin(self, pids: Iterable[int]) -> None:
        """The device is the same whoever works on it."""

    def read(self) -> Readings:
        gpu = self.gpu
        return {
            name: Answer(None, self.reason) if gpu is None else read(gpu)
            for name, read in GPU_READINGS.items()
        }


class HostSource:
    """The machine as the kernel sees it, and the memory of some processes. Its place is the
    scheduler's choice: workers use every core.
    """

    lead_ns = PERIOD_NS  # a share of time needs some time

    def __init__(self) -> None:
        self.header: Mapping[str, Any] = {
            "kind": "host",
            "uuid": None,
            "period_s": PERIOD_S,
            "board_wide": [],
        }
        cost_s = min(
            map(spent_on_clock_s, range(2))
        )  # the first reading also opens what later ones find open
        costly = (
            f"reading it takes {cost_s * 1000:.1f} ms of processor time, too much for"
            f" {1 / PERIOD_S:.0f} times a second"
        )
        self.no_clock = Answer(None, costly) if cost_s > MOST_CLOCK_S else None
        self.processes: list[psutil.Process] = []
        self.before = psutil.cpu_times()

    def begin(self, pids: Iterable[int]) -> None:
        self.before = psutil.cpu_times()
        self.processes = []
        for pid in pids:
            with suppress(psutil.Error):
                self.processes.append(psutil.Process(pid))

    def read(self) -> Readings:
        before, self.before = self.before, psutil.cpu_times()
        return {
            "cpu_ratio": busy_ratio(before, self.before),
            "cpu_clock_mhz": self.no_clock or cpu_clock_mhz(),
            "resident_bytes": resident_bytes(self.processes),
            "host_used_bytes": Answer(psutil.virtual_memory().used),
        }


def busy_ratio(before: Any, after: Any) -> Answer:
    """Of the time of all cores between two readings of their times, the share in which they were
    not idle.
    """
    # The last two, guest and guest_nice, are contained in user and nice.
    spent_s = sum(after[:-2]) - sum(before[:-2])
    idle_s = after.idle + after.iowait - before.idle - before.iowait
    return (
        Answer(min(1.0, max(0.0, 1 - idle_s / spent_s)))
        if spent_s > 0
        else Answer(None, "the kernel counts no processor time")
    )


def cpu_clock_mhz() -> Answer:
    """Mean over the cores."""
    try:
        clock = psutil.cpu_freq()
    except (OSError, ValueError, NotImplementedError):
        clock = None
    return (
        Answer(clock.current)
        if clock and clock.current
        else Answer(None, "the kernel tells no clock of the cores")
    )


def spent_on_clock_s(_: int) -> float:
    start_s = time.process_time()
    cpu_clock_mhz()
    return time.process_time() - start_s


def resident_bytes(processes: Iterable[psutil.Process]) -> Answer:
    """What these processes have in RAM together, pages that they share counted in each; those that
    have ended are left out.
    """
    found = []
    for process in processes:
        with suppress(psutil.Error):
            found.append(process.memory_info().rss)
    return Answer(sum(found)) if found else Answer(None, "no process was named that lives")


def converted(answer: Answer, convert: Callable[[Any], float]) -> Answer:
    return answer if answer.value is None else Answer(convert(answer.value))
