"""How the Triton kernels may be cut into blocks: data, in one place. `prepare` times what
`candidates` gives and takes the fastest.

The lists are short, because each entry costs seconds of compilation on first use. They were chosen
without a GPU, from what Triton 3.6 and 3.9 made of some 250 cuts for compute capability 8.0, 9.0
and 10.0: an entry stands here if it is cut as FlashAttention-2 cuts (tiles of 64 or 128 queries
against 32 to 128 keys, less for wide heads), if on full-width problems without a key mask Triton
3.9 spills no register of it, and if it fits into shared memory: 227 KiB for WARPGROUP; elsewhere at
least one entry of each list fits into 99 KiB, which the smallest GPUs have. What a GPU says of
their speed may change the lists. The first and the last entry of a list use no descriptors, and one
with descriptors stands beside the same cut without, which takes its place where tensors cannot be
described.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Literal, get_args

Kernel = Literal["forward", "grad_q", "grad_kv"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
WIDEST = 256  # the widest head: beyond it no tile fits into registers
SMALLEST_BLOCK = 16  # of queries or keys, below
# up to so many, as in decoding, one tile of queries is as small as matrix instructions allow
FEW_QUERIES = 16


@dataclass(frozen=True, slots=True)
class Config:
    """One way to cut and pipeline a kernel. A tile of queries meets a tile of keys; one of the two
    is walked over in `stages`.

    `descriptors`: the tiles that are walked over are copied by the GPU's tensor memory accelerator
    instead of by pointers, one per element. `specialize`: copies, matrix products and the rest are
    given to warps of their own; in the forward kernel alone, and with descriptors.
    """

    block_q: int
    block_kv: int
    warps: int
    stages: int
    descriptors: bool = False
    specialize: bool = False

    @classmethod
    def of(cls, numbers: Sequence[int]) -> "Config":
        block_q, block_kv, warps, stages, descriptors, specialize = numbers
        return cls(block_q, block_kv, warps, stages, bool(descriptors), bool(specialize))

    def numbers(self) -> list[int]:
        """As the operator takes it, which knows no types but torch's."""
        return [int(number) for number in astuple(self)]

    def by_pointers(self) -> "Config":
        """The same cut, for tensors that cannot be described."""
        return replace(self, descriptors=False, specialize=False)


Table = dict[Kernel, dict[int, tuple[Config, ...]]]
"""By kernel and by the widest of d_k and d_v that the entry is for."""

# Half precision on GPUs whose warpgroups multiply matrices together: compute capability 9.x and
# 10.x.
WARPGROUP: Table = {
    "forward": {
        64: (
            Config(128, 128, 8, 3),
            Config(128, 128, 8, 3, descriptors=True),
            Config(128, 64, 4, 3),
            Config(128, 64, 8, 3),
            Config(64, 64, 4, 3),
        ),
        128: (
            Config(128, 128, 8, 2),
            Config(128, 128, 8, 2, descriptors=True),
            Config(128, 64, 8, 3),
            Config(128, 64, 8, 3, descriptors=True),
            Config(64, 64, 4, 3),
        ),
        256: (
            Config(64, 64, 8, 2),
            Config(64, 64, 8, 2, descriptors=True),
            Config(128, 32, 8, 2),
            Config(64, 32, 4, 2),
        ),
    },
    "grad_q": {
        64: (
            Config(128, 128, 8, 2),
            Config(128, 64, 8, 2),
            Config(128, 64, 8, 2, descriptors=True),
            Config(64, 64, 4, 2),
        ),
        128: (
            Config(128, 64, 8, 2),
            Config(128, 64, 8, 2, descriptors=True),
            Config(64, 64, 8, 2),
            Config(64, 32, 4, 2),
        ),
        256: (Config(128, 32, 8, 2), Config(128, 32, 8, 2, descriptors=True), Config(64, 32, 8, 2)),
    },
    "grad_kv": {
        64: (
            Config(64, 128, 8, 2),
            Config(64, 128, 8, 2, descriptors=True),
            Config(32, 128, 8, 2),
            Config(64, 64, 4, 2),
        ),
        128: (
            Config(64, 64, 8, 2),
            Config(64, 64, 8, 2, descriptors=True),
            Config(32, 128, 8, 2),
            Config(32, 64, 4, 2),
        ),
        256: (Config(32, 32, 8, 2), Config(32, 32, 8, 2, descriptors=True), Config(16, 32, 4, 2)),
    },
}

# On 10.x beside these, by width, for problems that are not causal: of the others ptxas spills
# registers. Not on 9.x, where Triton 3.6 to 3.9 do not specialize kernels of 8 warps and fail to
# compile such as have 4.
SPECIALIZED: dict[int, tuple[Config, ...]] = {
    64: (Config(128, 64, 8, 3, descriptors=True, specialize=True),),
    128: (Config(128, 64, 8, 3, descriptors=True, specialize=True),),
}
SPECIALIZING: Table = WARPGROUP | {
    "forward": {
        width: (*listed[:2], *SPECIALIZED.get(width, ()), *listed[2:])
        for width, listed in WARPGROUP["forward"].items()
    }
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
        64: (Config(32, 128, 8, 2), Config(32, 128, 8, 3), Config(32, 64, 4, 2)),
        128: (Config(64, 64, 8, 2), Config(32, 64, 8, 2)),
        256: (Config(16, 64, 8, 2), Config(32, 32, 8, 2)),
    },
}

# fp32 is multiplied by ordinary instructions, on all GPUs alike (or, if TF32 is allowed, by warps).
FP32: Table = {
    "forward": {
        64: (Config(32, 32, 4, 2), Config(32, 64, 8, 2)),
        128: (Config(32, 32, 8, 2), Config(32, 16, 4, 2)),
        256: (Config(16, 16, 8, 2), Config(16, 16, 4, 1)),
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

# Where there are few queries, for the kernels that give each tile of them to one program; by bytes
# of an element.
FEW: dict[int, Table] = {
    2: {
        "forward": {
            64: (Config(16, 128, 4, 3), Config(16, 64, 4, 3)),
            128: (Config(16, 64, 4, 3),),
            256: (Config(16, 32, 4, 2),),
        },
        "grad_q": {
            64: (Config(16, 64, 4, 2),),
            128: (Config(16, 64, 4, 2),),
            256: (Config(16, 32, 4, 2),),
        },
    },
    4: {
        "forward": {
            64: (Config(16, 64, 4, 2),),
            128: (Config(16, 16, 4, 2),),
            256: (Config(16, 16, 8, 2),),
        },
        "grad_q": {
            64: (Config(16, 64, 8, 2),),
            128: (Config(16, 16, 4, 2),),
            256: (Config(16, 16, 8, 2),),
        },
    },
}


def candidates(
    kernel: Kernel,
    *,
    capability: tuple[int, int],
    item_bytes: int,
    width: int,
    n_q: int,
    causal: bool,
) -> tuple[Config, ...]:
    """The entries that fit the problem, the likeliest first. `width` is the larger of d_k
    and d_v.
    """
    table = table_for(capability, item_bytes, causal=causal)
    if n_q <= FEW_QUERIES and kernel in FEW[item_bytes]:
        table = FEW[item_bytes]
    by_width = table[kernel]
    return by_width[min(widest for widest in by_width if width <= widest)]


def table_for(capability: tuple[int, int], item_bytes: int, *, causal: bool) -> Table:
    if item_bytes == 4:
        return FP32
    return {9: WARPGROUP, 10: WARPGROUP if causal else SPECIALIZING}.get(capability[0], WARP)


def padded(width: int) -> int:
    """The power of two that a tile of this width takes; the smallest one that matrix instructions
    take is 16.
    """
    return max(16, 1 << (width - 1).bit_length())
