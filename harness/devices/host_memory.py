"""The host's memory, what of it is free, and what this process has mapped."""

import os
import resource
from pathlib import Path

from .control_group import memory_limit


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
