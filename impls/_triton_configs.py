"""How the Triton kernels may be cut into blocks: data, in one place. `prepare` times what `candidates` gives and takes the fastest.

The lists are short, because each entry costs seconds of compilation on first use. They were chosen without a GPU, from what Triton 3.6
and 3.9 made of some 200 cuts for compute capability 8.0, 9.0 and 10.0: an entry stands here if it is cut as FlashAttention-2 cuts
(tiles of 64 or 128 queries against 32 to 128 keys, less for wide heads), if on full-width problems without a key mask it spills at most
48 bytes of registers per thread, nearly always none, and if it fits into shared memory: 227 KiB for WARPGROUP; elsewhere at least one
entry of each list fits into 99 KiB, which the smallest GPUs have. What a GPU says of their speed may change the lists.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Kernel = Literal["forward", "grad_q", "grad_kv"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
WIDEST = 256  # the widest head: beyond it no tile fits into registers
SMALLEST_BLOCK = 16  # of queries or keys, below
FEW_QUERIES = 16  # up to so many, as in decoding, one tile of queries is as small as matrix instructions allow


@dataclass(frozen=True, slots=True)
class Config:
    """One way to cut and pipeline a kernel. A tile of queries meets a tile of keys; one of the two is walked over in `stages`."""

    block_q: int
    block_kv: int
    warps: int
    stages: int

    def numbers(self) -> list[int]:
        """As the operator takes it, which knows no types but torch's."""
        return [self.block_q, self.block_kv, self.warps, self.stages]


Table = dict[Kernel, dict[int, tuple[Config, ...]]]
"""By kernel and by the widest of d_k and d_v that the entry is for."""

# Half precision on GPUs whose warpgroups multiply matrices together: compute capability 9.x and 10.x.
WARPGROUP: Table = {
    "forward": {
        64: (Config(128, 128, 8, 3), Config(128, 64, 4, 3), Config(128, 64, 8, 3), Config(64, 64, 4, 3)),
        128: (Config(128, 128, 8, 2), Config(128, 64, 8, 3), Config(64, 64, 4, 3)),
        256: (Config(64, 64, 8, 2), Config(128, 32, 8, 2), Config(64, 32, 4, 2)),
    },
    "grad_q": {
        64: (Config(128, 128, 8, 2), Config(128, 64, 8, 2), Config(64, 64, 4, 2)),
        128: (Config(128, 64, 8, 2), Config(64, 64, 4, 2), Config(64, 64, 8, 2)),
        256: (Config(128, 32, 8, 2), Config(64, 32, 8, 2)),
    },
    "grad_kv": {
        64: (Config(64, 128, 8, 2), Config(32, 128, 8, 2), Config(64, 64, 4, 2)),
        128: (Config(64, 64, 8, 2), Config(32, 128, 8, 2), Config(32, 64, 4, 2)),
        256: (Config(32, 32, 8, 2), Config(16, 32, 4, 2)),
    },
}

# Half precision on all others, where each warp multiplies by itself: 8.x and 12.x.
WARP: Table = {
    "forward": {
        64: (Config(128, 128, 8, 3), Config(128, 64, 8, 3), Config(64, 64, 4, 3)),
        128: (Config(128, 64, 8, 3), Config(64, 64, 4, 3), Config(64, 64, 8, 3)),
        256: (Config(64, 32, 8, 2), Config(64, 64, 8, 1)),
    },
    "grad_q": {
        64: (Config(128, 64, 8, 2), Config(64, 64, 4, 2)),
        128: (Config(64, 64, 8, 2), Config(64, 32, 4, 2)),
        256: (Config(64, 64, 8, 2), Config(64, 32, 8, 2), Config(64, 32, 8, 1)),
    },
    "grad_kv": {
        64: (Config(64, 128, 8, 2), Config(32, 128, 8, 2), Config(32, 64, 4, 2)),
        128: (Config(64, 64, 8, 2), Config(32, 64, 8, 2)),
        256: (Config(32, 64, 8, 2), Config(32, 32, 8, 2)),
    },
}

# fp32 is multiplied by ordinary instructions, on all GPUs alike (or, if TF32 is allowed, by warps).
FP32: Table = {
    "forward": {
        64: (Config(32, 32, 4, 2), Config(32, 64, 8, 2)),
        128: (Config(32, 32, 8, 2), Config(32, 16, 4, 2)),
        256: (Config(16, 16, 4, 2),),
    },
    "grad_q": {
        64: (Config(64, 32, 8, 2), Config(32, 32, 8, 2)),
        128: (Config(32, 32, 8, 2), Config(32, 16, 4, 2)),
        256: (Config(32, 16, 8, 2),),
    },
    "grad_kv": {
        64: (Config(32, 32, 8, 2), Config(16, 32, 4, 2)),
        128: (Config(16, 32, 8, 2), Config(16, 16, 4, 2)),
        256: (Config(16, 16, 8, 1),),
    },
}

# Where there are few queries, for the kernels that give each tile of them to one program; by bytes of an element.
FEW: dict[int, Table] = {
    2: {
        "forward": {64: (Config(16, 128, 4, 3), Config(16, 64, 4, 3)), 128: (Config(16, 64, 4, 3),), 256: (Config(16, 32, 4, 2),)},
        "grad_q": {64: (Config(16, 64, 4, 2),), 128: (Config(16, 64, 4, 2),), 256: (Config(16, 32, 4, 2),)},
    },
    4: {
        "forward": {64: (Config(16, 64, 4, 2),), 128: (Config(16, 16, 4, 2),), 256: (Config(16, 16, 4, 2),)},
        "grad_q": {64: (Config(16, 32, 4, 2),), 128: (Config(16, 16, 4, 2),), 256: (Config(16, 16, 8, 2),)},
    },
}


def candidates(kernel: Kernel, *, capability: tuple[int, int], item_bytes: int, width: int, n_q: int) -> tuple[Config, ...]:
    """The entries that fit the problem, the likeliest first. `width` is the larger of d_k and d_v."""
    table = table_for(capability, item_bytes)
    if n_q <= FEW_QUERIES and kernel in FEW[item_bytes]:
        table = FEW[item_bytes]
    by_width = table[kernel]
    return by_width[min(widest for widest in by_width if width <= widest)]


def table_for(capability: tuple[int, int], item_bytes: int) -> Table:
    return FP32 if item_bytes == 4 else WARPGROUP if capability[0] in (9, 10) else WARP


def padded(width: int) -> int:
    """The power of two that a tile of this width takes; the smallest one that matrix instructions take is 16."""
    return max(16, 1 << (width - 1).bit_length())
