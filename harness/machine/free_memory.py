"""Memory that is free here, and what this process has mapped."""

import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .control_group import memory_limit

if TYPE_CHECKING:
    import torch


def available_bytes(device: "torch.device") -> int:
    """Free memory: the device's, or the host's, which some GPUs share. Of that CUDA says how much
    nobody uses, without the page cache, which the kernel gives back.
    """
    if device.type != "cuda" or shares_host_memory(device):
        return host_available_bytes()
    import torch

    return int(torch.cuda.mem_get_info(device)[0])


def shares_host_memory(device: "torch.device") -> bool:
    import torch

    from .nvml import SharedMemory, each_gpu, memory_info

    with suppress(AssertionError, RuntimeError):  # a torch that cannot use the GPU
        properties = torch.cuda.get_device_properties(device)
        return bool(getattr(properties, "is_integrated", False))
    gpus = [one.value for one in each_gpu().value or [] if one.value]
    return len(gpus) == 1 and isinstance(memory_info(gpus[0]).value, SharedMemory)


def host_total_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


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
