"""What the telemetry sampler reads: a GPU through NVML, or the host through psutil."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import psutil

from ..machine.nvml import (
    BOARD_READINGS,
    Device,
    Gpu,
    Reading,
    latest_busy_ratio,
    open_gpu,
    plausible,
    used_bytes,
)

PERIOD_S = 0.2
"""5 Hz: power is an average of up to 1 s, utilization of 1/6 s or more."""
PERIOD_NS = int(PERIOD_S * 1e9)
MOST_CLOCK_S = 1e-3
"""Of CPU time to read the cores' clocks: half of what a sample may take, 1 % of PERIOD_S."""


GPU_READINGS: dict[str, Callable[[Gpu], Reading]] = {
    **BOARD_READINGS,
    "device_used_bytes": used_bytes,
    "kernel_busy_ratio": latest_busy_ratio,
}


class GpuSource:
    """A GPU through NVML. `header`: the line that describes it in the file. `lead_ns`: how long to
    wait between `begin` and the first sample.

    The sampler gets a core of its own if there are several: waking up must not move the thread that
    launches kernels. It is not niced: a late sample is a wrong one, and outside of latency windows
    1 % of a core disturbs nothing.
    """

    lead_ns = 0

    def __init__(self, uuid: str) -> None:
        with suppress(OSError):  # a sandbox may forbid it
            cores = os.sched_getaffinity(0)
            os.sched_setaffinity(0, {max(cores)} if len(cores) > 1 else cores)
        self.gpu: Gpu | None
        self.gpu, self.reason = open_gpu(Device(uuid=uuid))
        shared = self.gpu is not None and self.gpu.board is not self.gpu
        self.header = header("gpu", uuid, BOARD_READINGS if shared else ())

    def begin(self, pids: Iterable[int]) -> None:
        """The device is the same for all processes."""

    def read(self) -> dict[str, Reading]:
        if self.gpu is None:
            return dict.fromkeys(GPU_READINGS, Reading(None, self.reason))
        return {name: plausible(name, read(self.gpu)) for name, read in GPU_READINGS.items()}


class HostSource:
    """As GpuSource: the machine's CPU and memory, and the memory of some processes.

    The scheduler chooses the sampler's core: workers use all of them.
    """

    lead_ns = PERIOD_NS  # a share of time needs some time

    def __init__(self) -> None:
        self.header = header("host", None)
        # Twice: the first reading also opens files that stay open.
        cost_s = min(cpu_clock_cost_s(), cpu_clock_cost_s())
        costly = (
            f"reading it takes {cost_s * 1000:.1f} ms of processor time, too much for"
            f" {1 / PERIOD_S:.0f} times a second"
        )
        self.no_clock = Reading(None, costly) if cost_s > MOST_CLOCK_S else None
        self.processes: list[psutil.Process] = []
        self.before = psutil.cpu_times()

    def begin(self, pids: Iterable[int]) -> None:
        self.before = psutil.cpu_times()
        self.processes = []
        for pid in pids:
            with suppress(psutil.Error):
                self.processes.append(psutil.Process(pid))

    def read(self) -> dict[str, Reading]:
        before, self.before = self.before, psutil.cpu_times()
        return {
            "cpu_ratio": busy_ratio(before, self.before),
            "cpu_clock_mhz": self.no_clock or cpu_clock_mhz(),
            "resident_bytes": resident_bytes(self.processes),
            "host_used_bytes": Reading(psutil.virtual_memory().used),
        }


Source = GpuSource | HostSource


def header(kind: str, uuid: str | None, board_wide: Iterable[str] = ()) -> Mapping[str, Any]:
    return {"kind": kind, "uuid": uuid, "period_s": PERIOD_S, "board_wide": list(board_wide)}


def busy_ratio(before: Any, after: Any) -> Reading:
    """The share of the time of all cores between two readings in which they were not idle."""
    # The last two, guest and guest_nice, are contained in user and nice.
    spent_s = sum(after[:-2]) - sum(before[:-2])
    if spent_s <= 0:
        return Reading(None, "the kernel counts no processor time")
    idle_s = after.idle + after.iowait - before.idle - before.iowait
    return Reading(min(1.0, max(0.0, 1 - idle_s / spent_s)))


def cpu_clock_mhz() -> Reading:
    """Mean over the cores."""
    with suppress(OSError, ValueError, NotImplementedError):
        clock = psutil.cpu_freq()
        if clock and clock.current:
            return Reading(clock.current)
    return Reading(None, "the kernel reports no clock of the cores")


def cpu_clock_cost_s() -> float:
    start_s = time.process_time()
    cpu_clock_mhz()
    return time.process_time() - start_s


def resident_bytes(processes: Iterable[psutil.Process]) -> Reading:
    """Memory in RAM of these processes; shared pages count in each.

    Processes that have ended are left out.
    """
    found = []
    for process in processes:
        with suppress(psutil.Error):
            found.append(process.memory_info().rss)
    return Reading(sum(found)) if found else Reading(None, "none of the named processes is alive")
