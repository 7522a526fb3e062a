"""Memory in use on the device, and by which processes.

Processes are listed after the window: the driver's list takes a lock that kernel launches wait for.
"""

import os

from ..host import descendants, run_pid
from ..nvml import Device, Gpu, Reading, used_bytes
from . import Watch, gpu_window

MEASURES = ("utilization",)
COLUMNS = {
    "device_used_bytes": "used on the device by all processes, without the driver's reserve",
    "process_used_bytes": "used by this process, its context included",
    "other_process_count": "other processes with a compute context on the device",
}
NOT_LISTED = (
    "the driver does not list this process: in a container it lists the host's numbers, or none"
)


def watch(device: Device) -> Watch:
    return gpu_window(device, COLUMNS, start=lambda _: None, end=used_bytes, read=read)


def read(gpu: Gpu, start: None, used: Reading) -> dict[str, Reading]:
    listed = gpu.query("nvmlDeviceGetComputeRunningProcesses").map(
        lambda processes: {process.pid: process.usedGpuMemory for process in processes}
    )
    # If our own process is not listed, the numbers are not those that we see.
    if listed.value is not None and os.getpid() not in listed.value:
        listed = Reading(None, NOT_LISTED)
    own = listed.map(lambda processes: processes[os.getpid()])
    if own == Reading(None):
        own = Reading(None, "the driver does not say how much")
    return {
        "device_used_bytes": used,
        "process_used_bytes": own,
        "other_process_count": listed.map(lambda processes: len(set(processes) - own_run())),
    }


def own_run() -> set[int]:
    """Processes of this run: this one, the one that started it, and all others below that."""
    return {os.getpid(), run_pid(), *descendants(run_pid())}
