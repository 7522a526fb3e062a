"""Memory that is free here, and what this process has mapped."""

import resource
from pathlib import Path
from typing import TYPE_CHECKING

from .control_group import memory_limit

if TYPE_CHECKING:
    import torch


def available_bytes(device: "torch.device") -> int:
    """Free memory: the device's, or the host's."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    return host_available_bytes()


def host_available_bytes() -> int:
    """Of the host's free memory what our control groups and `ulimit -v` allow."""
    import psutil

    free = [int(psutil.virtual_memory().available)]
    if group := memory_limit():
        free.append(group.free_bytes)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        free.append(max(0, hard - address_space_bytes()))
    return min(free)


def address_space_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
