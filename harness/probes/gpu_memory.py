"""What is used on the device, by whom. Processes are listed after the window: the list holds a lock
that kernels' launches wait for.
"""

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import psutil

from ..nvml import Answer, Device, Gpu, open_gpu, used_bytes
from . import Readings, nothing, told

MEASURES = ("utilization",)
COLUMNS = {
    "device_used_bytes": (
        "used on the device at the end of the window by everybody, contexts included, the driver's"
        " reserve left out"
    ),
    "process_used_bytes": "used by this process, its context included",
    "other_process_count": "processes with a compute context on the device beside ours",
}


class MemoryWatch:
    def __init__(self, device: Device) -> None:
        opened = open_gpu(device)
        self.gpu: Gpu | None = opened.value
        self.reason = opened.reason
        self.used = Answer(None, "never left")

    def __enter__(self) -> "MemoryWatch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.gpu:
            self.used = used_bytes(self.gpu)

    def readings(self) -> Readings:
        if self.gpu is None:
            return nothing(COLUMNS, self.reason)
        processes = self.gpu.ask("nvmlDeviceGetComputeRunningProcesses")
        found = {
            "device_used_bytes": self.used,
            "process_used_bytes": own(processes),
            "other_process_count": others(processes),
        }
        return told(found)


UNSEEN = (
    "the driver does not list this process: in a container it gives the host's process numbers, or"
    " none"
)


def own(processes: Answer) -> Answer:
    if processes.value is None:
        return processes
    mine = next((process for process in processes.value if process.pid == os.getpid()), None)
    if mine is None:
        return Answer(None, UNSEEN)
    return (
        Answer(None, "the driver does not say how much")
        if mine.usedGpuMemory is None
        else Answer(int(mine.usedGpuMemory))
    )


def others(processes: Answer) -> Answer:
    """How many are strangers. Where our own process is not listed, nobody can tell who the listed
    ones are.
    """
    if processes.value is None:
        return processes
    if os.getpid() not in {process.pid for process in processes.value}:
        return Answer(None, UNSEEN)
    return Answer(len(strangers(processes.value)))


def strangers(processes: Sequence[Any]) -> list[int]:
    """Process numbers that belong neither to this process nor to its run: the parent, and the
    parent's other workers.
    """
    ours = {os.getpid()}
    try:
        parent = psutil.Process().parent()
        if parent is not None:
            ours |= {parent.pid, *(child.pid for child in parent.children(recursive=True))}
    except psutil.Error:
        pass
    return sorted({process.pid for process in processes} - ours)


def watch(device: Device) -> MemoryWatch:
    return MemoryWatch(device)
