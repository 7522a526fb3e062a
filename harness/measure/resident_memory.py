"""The peak of a call in resident pages: a check of the CPU allocator from outside torch."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..rows.readings import seen_from_bytes
from .warm_heap import WarmHeap

T = TypeVar("T")

# proc(5), /proc/pid/clear_refs: sets the high-water mark to what is resident now
RESET_HIGH_WATER = "5"
SLACK_BYTES = 1 << 20  # a mark that is further above was not reset


def resident_peak_bytes(setup: Callable[[], T], call: Callable[[T], object]) -> int | None:
    """VmHWM of `call(setup())` above what was resident before `setup`.

    None if the kernel keeps no such mark or does not reset it, or if the heap holds free blocks:
    they would be used again, and then stay resident beside the next tensor. It sees what torch's
    allocator does not: buffers of matrix libraries, other threads, Python's own. It does not see
    memory that is never touched, nor small tensors that fit into resident pages, so it is off by
    some 0.5 MiB either way.

    Sets the C heap to glibc's fixed defaults for good. While glibc moves its threshold by itself,
    tensors of up to 32 MiB are carved from a heap that keeps and splinters freed memory: naive at
    N = 2048, h = 8 then has 4.3 times its peak resident.
    """
    heap = WarmHeap()
    heap.give_back()
    ctypes.CDLL(None).malloc_trim(0)  # free pages would be used again without a trace
    free = heap.free_bytes()
    if free is None or free > seen_from_bytes("cpu"):
        return None
    before = status_bytes("VmRSS")
    ready = setup()
    if before is None or not _reset():
        return None
    result = call(ready)
    highest = status_bytes("VmHWM")
    del result, ready
    return None if highest is None else max(0, highest - before)


def _reset() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text(RESET_HIGH_WATER)
    except OSError:
        return False
    highest, now = status_bytes("VmHWM"), status_bytes("VmRSS")
    return highest is not None and now is not None and highest - now <= SLACK_BYTES


def own_bytes(pid: int) -> int:
    """Written pages that a process shares with none, so what a fork still shares does not count; 0
    if it has ended.
    """
    return status_bytes("Private_Dirty", f"{pid}/smaps_rollup") or 0


def status_bytes(name: str, of: str = "self/status") -> int | None:
    """A line of a file of /proc, proc(5); None if the kernel has no such line."""
    try:
        lines = Path("/proc", of).read_text().splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith(f"{name}:")), None)
    return None if found is None else int(found.split()[1]) * 1024
