"""Which processes use a GPU.

In a container the driver gives the host's process numbers or none: then it is unknown whose
processes they are, and is not guessed.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from .host import descendants
from .nvml import Gpu, Reading

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
    with suppress(psutil.Error):
        return psutil.Process(pid).name()
    return None
