"""The caching allocator's statistics, from the storages that are alive."""

from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

BLOCK_BYTES = (
    512  # what an allocation is rounded to (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize)
)
SEGMENT_BYTES = 2 << 20  # what is taken from the device at a time
CONTEXT_BYTES = 500 << 20  # of the device, taken by the process's context
COUNTED = ("requested_bytes", "allocated_bytes", "reserved_bytes")


class Allocator:
    """Bytes asked for, rounded to blocks, and reserved in segments; now and at most.

    `outside_bytes`: what others, or a library, have taken of the device. `backend`: the allocator's
    name; cudaMallocAsync counts no requests and gives no snapshot.
    """

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes, self.outside_bytes = total_bytes, CONTEXT_BYTES
        self.fraction = 1.0
        self.backend = "native"
        self.now = dict.fromkeys(COUNTED, 0)
        self.most = dict.fromkeys(COUNTED, 0)
        self.alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self.holder: list[Any] | None = None
        self.open_pools: list[Any] = []

    def add(self, tensor: torch.Tensor) -> None:
        """A tensor with new memory on the device. Raises torch.OutOfMemoryError."""
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        self.sweep()
        if size:
            self._reserve(_rounded(size, BLOCK_BYTES))
        self.now["requested_bytes"] += size
        self.now["allocated_bytes"] += _rounded(size, BLOCK_BYTES)
        self.alive[storage._cdata] = (StorageWeakRef(storage), size)
        if self.holder is not None:
            self.holder.append(storage)  # a graph keeps the memory that it was captured with
        self._note()

    def has(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self.alive

    def sweep(self) -> None:
        """Count what was freed."""
        for key, (reference, size) in list(self.alive.items()):
            if reference.expired():
                del self.alive[key]
                self.now["requested_bytes"] -= size
                self.now["allocated_bytes"] -= _rounded(size, BLOCK_BYTES)

    def _reserve(self, size: int) -> None:
        wanted = self.now["allocated_bytes"] + size
        if wanted <= self.now["reserved_bytes"]:
            return
        reserved = _rounded(wanted, SEGMENT_BYTES)
        allowed = int(self.fraction * self.total_bytes)
        if reserved > min(allowed, self.total_bytes - self.outside_bytes):
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {_words(size)}. GPU 0 has a total capacity"
                f" of {_words(self.total_bytes)} of which {_words(self.free_bytes)} is free."
                f" {_words(allowed)} allowed; Of the allocated memory"
                f" {_words(self.now['allocated_bytes'])} is allocated by PyTorch"
            )
        self.now["reserved_bytes"] = reserved

    @property
    def free_bytes(self) -> int:
        return self.total_bytes - self.outside_bytes - self.now["reserved_bytes"]

    def empty_cache(self) -> None:
        self.sweep()
        self.now["reserved_bytes"] = _rounded(self.now["allocated_bytes"], SEGMENT_BYTES)

    def reset_peak(self) -> None:
        self.sweep()
        self.most = dict(self.now)

    def statistics(self) -> dict[str, Any]:
        """Nested, as torch._C._cuda_memoryStats gives them."""
        self.sweep()
        counts = self.backend == "native"
        return {
            name: {
                "all": {
                    "current": self.now[name] if counts or name != "requested_bytes" else 0,
                    "peak": self.most[name] if counts or name != "requested_bytes" else 0,
                }
            }
            for name in COUNTED
        }

    def snapshot(self) -> dict[str, Any]:
        if self.backend != "native":
            raise RuntimeError("Calling snapshot with backend:cudaMallocAsync is not meaningful.")
        self.sweep()
        return {
            "segments": [
                {"address": _address(reference), "total_size": size}
                for reference, size in self.alive.values()
            ]
        }

    def begin_pool(self, pool: Any, held: list[Any]) -> None:
        """What is allocated from now on is held by a graph; torch gives back no cache meanwhile."""
        self.holder = held
        self.open_pools.append(pool)

    def end_pool(self, pool: Any) -> None:
        if pool not in self.open_pools:
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")
        self.open_pools.remove(pool)

    def _note(self) -> None:
        self.most = {name: max(self.most[name], self.now[name]) for name in COUNTED}


def _address(reference: StorageWeakRef) -> int:
    storage = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
    return 0 if storage is None else int(storage.data_ptr())


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _words(size: int) -> str:
    """As c10::cuda::CUDACachingAllocator::format_size."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"
