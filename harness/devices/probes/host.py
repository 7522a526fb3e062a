"""CPU time and memory of this process.

The only utilization on a CPU; on a GPU it shows whether launching keeps a core busy.
"""

import time

import psutil
import torch

from ..nvml import Device
from . import Watch, Window

MEASURES = ("utilization",)
COLUMNS = {
    "host_cpu_ratio": "CPU time of this process over the window's time and torch's threads",
    "host_busy_cores": "cores that this process kept busy",
    "host_thread_count": "threads that torch computes with",
    "host_resident_bytes": "memory of this process in RAM at the end of the window",
}


def watch(device: Device) -> Watch:
    process = psutil.Process()

    def read(start: tuple[float, float], end: tuple[float, float]) -> dict[str, float]:
        (start_s, start_cpu_s), (end_cpu_s, end_s) = start, end
        threads = torch.get_num_threads()
        busy_cores = (end_cpu_s - start_cpu_s) / (end_s - start_s)
        return {
            "host_cpu_ratio": busy_cores / threads,
            "host_busy_cores": busy_cores,
            "host_thread_count": threads,
            "host_resident_bytes": process.memory_info().rss,
        }

    return Window(
        start=lambda: (time.perf_counter(), time.process_time()),
        end=lambda: (time.process_time(), time.perf_counter()),
        read=read,
    )
