"""Memory with bounds: that of the GPU, shared memory, and the tensors that TMA copies from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

U8, U16, U32, U64 = np.uint8, np.uint16, np.uint32, np.uint64
RAW = {1: U8, 2: U16, 4: U32, 8: U64}
GLOBAL_BASE, PARAMETER_BASE = 1 << 40, 1 << 36
GUARD_BYTES = 4096  # around each tensor; nothing may touch them
PUBLISHED = 1000  # in place of a warp: a barrier came after the write
TMA_ALIGNED_BYTES = 128  # a tile's place in shared memory


class Fault(Exception):
    """The kernel did what no correct kernel does."""


def aligned(addresses: np.ndarray, size: int) -> None:
    """Fault unless all are multiples of `size`, a power of 2."""
    if (addresses & addresses.dtype.type(size - 1)).any():
        raise Fault(f"not aligned to {size} bytes")


class Memory:
    """Bytes from `base` on, of which only those that were allowed may be touched."""

    def __init__(self, base: int, size: int, fill: int = 0) -> None:
        self.base = base
        self.bytes = np.full(-(-size // 16) * 16, fill, U8)
        self.views = {size: self.bytes.view(kind) for size, kind in RAW.items()}
        self.allowed = np.zeros(len(self.bytes), bool)

    def load(self, addresses: np.ndarray, size: int) -> np.ndarray:
        """Elements of `size` bytes, in the shape of the addresses."""
        return self.views[size][self._places(addresses, size)]

    def store(self, addresses: np.ndarray, size: int, values: np.ndarray) -> None:
        self.views[size][self._places(addresses, size)] = values

    def _places(self, addresses: np.ndarray, size: int) -> np.ndarray:
        offsets = addresses.astype(np.int64) - self.base
        aligned(offsets, size)
        inside = (offsets >= 0) & (offsets + size <= len(self.bytes))
        if not (inside.all() and self.allowed[offsets].all()):
            raise Fault(f"outside of memory: {[hex(int(a)) for a in addresses.flat[:4]]}")
        return offsets // size


class Global(Memory):
    """Arrays with guards between them."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        whole = sum(array.nbytes + 2 * GUARD_BYTES for array in arrays)
        super().__init__(GLOBAL_BASE, whole + GUARD_BYTES)
        self.starts: list[int] = []
        at = GUARD_BYTES
        for array in arrays:
            self.bytes[at : at + array.nbytes] = array.reshape(-1).view(U8)
            self.allowed[at : at + array.nbytes] = True
            self.starts.append(at)
            at += -(-(array.nbytes + GUARD_BYTES) // 256) * 256

    def address(self, index: int) -> int:
        return self.base + self.starts[index]

    def copy_of(self, index: int, like: np.ndarray) -> np.ndarray:
        start = self.starts[index]
        return self.bytes[start : start + like.nbytes].copy().view(like.dtype)


class Shared(Memory):
    """A block's. It starts as NaN. `unfenced`, by words of 4 bytes: the warp + 1 whose write the
    asynchronous proxy (wgmma, TMA) need not see yet.
    """

    def __init__(self, size: int) -> None:
        super().__init__(0, size, fill=0xFF)
        self.allowed[:size] = True
        self.unfenced = np.zeros(len(self.bytes) // 4, np.int16)

    def written(self, addresses: np.ndarray, warp: int) -> None:
        self.unfenced[addresses >> 2] = warp + 1

    def publish(self, warps: np.ndarray) -> None:
        """After a barrier a fence of any warp is good for what these wrote before it."""
        self.unfenced[np.isin(self.unfenced, warps + 1)] = PUBLISHED

    def fence(self, warps: np.ndarray) -> None:
        self.unfenced[np.isin(self.unfenced, [*(warps + 1), PUBLISHED])] = 0

    def seen_by_async(self, addresses: np.ndarray) -> None:
        if self.unfenced[addresses >> 2].any():
            raise Fault("the asynchronous proxy reads what no fence.proxy.async made visible")


def swizzled(addresses: np.ndarray, mode: int) -> np.ndarray:
    """Modes 0 to 3: none, or units of 16 bytes permuted within 32, 64 or 128 bytes."""
    return addresses ^ ((addresses >> 7 & (1 << mode) - 1) << 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMap:
    """As cuTensorMapEncodeTiled makes it: sizes innermost first, strides in bytes."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    item_bytes: int
    swizzle: int

    def bytes(self) -> int:
        """Of a tile; also where it reaches beyond the tensor, which reads as zeros."""
        return int(np.prod(self.box)) * self.item_bytes

    def copy(self, memory: Memory, shared: Shared, start: Sequence[int], target: int) -> np.ndarray:
        """Fill shared memory from `target` on; the words written."""
        aligned(np.array([target]), TMA_ALIGNED_BYTES)
        inside, address = np.ones((), bool), np.full((), self.address)
        for first, size, stride, box in zip(start, self.shape, self.strides, self.box, strict=True):
            index = first + np.arange(box)
            outwards = -1, *(1,) * inside.ndim
            inside = inside & ((index >= 0) & (index < size)).reshape(outwards)
            address = address + (index * stride).reshape(outwards)
        values = np.zeros(inside.size, RAW[self.item_bytes])
        read = np.broadcast_to(inside, address.shape).reshape(-1)
        values[read] = memory.load(address.reshape(-1)[read], self.item_bytes)
        to = swizzled(target + np.arange(len(values)) * self.item_bytes, self.swizzle)
        shared.store(to, self.item_bytes, values)
        words = np.unique(to >> 2)
        shared.unfenced[words] = 0
        return words
