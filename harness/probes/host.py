"""What the process itself takes of the host: all there is to see on a CPU, and on a GPU whether
launching keeps a core busy.
"""

import time
from types import TracebackType

import psutil
import torch

from ..nvml import Device
from . import Readings

MEASURES = ("utilization",)
COLUMNS = {
    "host_cpu_ratio": "CPU time of this process over the window's time and torch's threads",
    "host_busy_cores": (
        "CPU time of this process over the window's time: how many cores it kept busy"
    ),
    "host_thread_count": "threads that torch computes with",
    "host_resident_bytes": "memory of this process in RAM at the end of the window",
}


class HostWatch:
    def __init__(self) -> None:
        self.process = psutil.Process()
        self.start_s = self.start_cpu_s = self.spent_s = self.spent_cpu_s = 0.0

    def __enter__(self) -> "HostWatch":
        self.start_s, self.start_cpu_s = time.perf_counter(), time.process_time()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.spent_cpu_s = time.process_time() - self.start_cpu_s
        self.spent_s = time.perf_counter() - self.start_s

    def readings(self) -> Readings:
        threads = torch.get_num_threads()
        busy = self.spent_cpu_s / self.spent_s
        resident = self.process.memory_info().rss
        values = {
            "host_cpu_ratio": busy / threads,
            "host_busy_cores": busy,
            "host_thread_count": threads,
            "host_resident_bytes": resident,
        }
        return Readings(values, {})


def watch(device: Device) -> HostWatch:
    return HostWatch()
