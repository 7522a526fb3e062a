"""Keep freed memory in the C heap (`plan.allocator`): on a CPU this decides what a temporary costs.

glibc returns every large block to the kernel and gets it back zeroed, page by page. For attention
that writes its scores, those page faults are most of the time: fused at N = 1024, h = 8 took 44 ms
with 24 579 faults a call, and 17 ms with none from a heap that keeps its memory (2 cores). A warm
heap shows what the computation costs, the default heap what an untuned program pays.
"""

import ctypes
from typing import Any

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -2, -3, -4  # mallopt(3)
DEFAULT_MMAP_MAX, DEFAULT_THRESHOLD_BYTES = 65536, 128 << 10
MALLINFO2 = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks"),
    *("fordblks", "keepcost"),
)


class Mallinfo2(ctypes.Structure):
    """struct mallinfo2, mallinfo(3)."""

    _fields_ = [(name, ctypes.c_size_t) for name in MALLINFO2]


class WarmHeap:
    """Keeps freed memory between `keep` and `give_back`.

    `works` is False if the C library has no mallopt (musl, macOS).
    """

    def __init__(self) -> None:
        self._libc: Any = ctypes.CDLL(None)
        self.works = hasattr(self._libc, "mallopt")

    def keep(self) -> None:
        """From here on allocations come from the heap alone, and the heap never shrinks."""
        self._set({M_MMAP_MAX: 0, M_TRIM_THRESHOLD: -1})

    def give_back(self) -> None:
        """Back to glibc's documented defaults; `peak_memory.release` then returns what is free."""
        options = {M_MMAP_MAX: DEFAULT_MMAP_MAX, M_MMAP_THRESHOLD: DEFAULT_THRESHOLD_BYTES}
        self._set({**options, M_TRIM_THRESHOLD: DEFAULT_THRESHOLD_BYTES})

    def free_bytes(self) -> int | None:
        """Unused bytes in the heap (mallinfo2 of glibc 2.33, main arena); None if unknown."""
        if not hasattr(self._libc, "mallinfo2"):
            return None
        self._libc.mallinfo2.restype = Mallinfo2
        return int(self._libc.mallinfo2().fordblks)

    def used_bytes(self) -> int | None:
        """What malloc has given out, in heaps and in blocks of their own; None if unknown."""
        if not hasattr(self._libc, "mallinfo2"):
            return None
        self._libc.mallinfo2.restype = Mallinfo2
        found = self._libc.mallinfo2()
        return int(found.uordblks + found.hblkhd)

    def _set(self, options: dict[int, int]) -> None:
        if self.works:
            for option, value in options.items():
                self._libc.mallopt(option, value)
