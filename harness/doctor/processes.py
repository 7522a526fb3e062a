"""Who else uses a GPU. In a container the driver gives the host's process numbers or none: then it
cannot be known, and is not guessed.
"""

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from ..nvml import Answer, Gpu

# Linux, include/linux/proc_ns.h, PROC_PID_INIT_INO: process numbers are the driver's own
FIRST_PID_NAMESPACE = "pid:[4026531836]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """`ours`: of this process's own tree; None where the driver's process numbers are not those of
    this container.
    """

    pid: int
    used_bytes: int | None
    ours: bool | None
    name: str | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """All that the driver lists. `known`: its process numbers are ours, so that the list can be
    believed, also where it is empty.
    """

    processes: tuple[Process, ...]
    known: bool

    @property
    def foreign(self) -> list[Process]:
        return [process for process in self.processes if process.ours is False]


def users(gpu: Gpu) -> Answer:
    """The Users of this GPU, or of this instance of it."""
    computing = gpu.ask("nvmlDeviceGetComputeRunningProcesses")
    if computing.value is None:
        return computing
    drawing = gpu.ask("nvmlDeviceGetGraphicsRunningProcesses").value or []
    listed = {one.pid: one.usedGpuMemory for one in (*drawing, *computing.value)}
    known = os.getpid() in listed or in_first_namespace()
    tree = own_tree()
    found = (
        Process(
            pid=pid,
            used_bytes=used,
            ours=pid in tree if known else None,
            name=name_of(pid) if known else None,
        )
        for pid, used in sorted(listed.items())
    )
    return Answer(Users(processes=tuple(found), known=known))


def in_first_namespace() -> bool:
    """Whether this is no container, so that the driver's process numbers are those seen here."""
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink()) == FIRST_PID_NAMESPACE
    return False


def own_tree() -> set[int]:
    this = psutil.Process()
    return {this.pid, *(child.pid for child in this.children(recursive=True))}


def name_of(pid: int) -> str | None:
    with suppress(psutil.Error):
        return psutil.Process(pid).name()
    return None
