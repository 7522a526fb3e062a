"""Block sizes of the Triton kernels: the candidates that `prepare` times on a GPU.

The lists are short, because each entry costs seconds of compilation on first use. They were chosen
without a GPU, from some 250 configurations compiled by Triton 3.6 and 3.9 for compute capability
8.0, 9.0 and 10.0. An entry is listed if its tiles are those of FlashAttention-2 (64 or 128 queries
by 32 to 128 keys, less for wide heads), if on full-width problems without a key mask Triton 3.9
spills no register, and if it fits into shared memory: 227 KiB for WARPGROUP; elsewhere at least one
entry of each list fits into 99 KiB, which the smallest GPUs have. Measurements on GPUs may change
the lists. The first and the last entry of a list use no descriptors. An entry with descriptors is
next to the same one without, which replaces it if the tensors cannot be described.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Literal, get_args

Kernel = Literal["forward", "grad_q", "grad_kv"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
WIDEST = 256  # the widest head: beyond it no tile fits into registers
SMALLEST_BLOCK = 16  # queries or keys of a tile: the least that matrix instructions take
FEW_QUERIES = 16  # up to so many, as in decoding, tiles have the smallest number of queries


@dataclass(frozen=True, slots=True)
class Config:
    """Tile sizes and pipelining of a kernel, which iterates over tiles of queries or of keys.

    `stages` is the depth of that pipeline. `descriptors`: the tensor memory accelerator copies the
    tiles, instead of one pointer per element. `specialize`: copies, matrix products and the rest
    get warps of their own; only in the forward kernel and with descriptors. `gluon`: the forward
    kernel of hopper_forward.py, which has descriptors and specialized warps of its own; `warps` are
    those of its consumers.
    """

    block_q: int
    block_kv: int
    warps: int
    stages: int
    descriptors: bool = False
    specialize: bool = False
    gluon: bool = False

    @classmethod
    def of(cls, numbers: Sequence[int]) -> "Config":
        """Options that are not there, as in rows from before they existed, are off."""
        block_q, block_kv, warps, stages, *options = numbers
        return cls(block_q, block_kv, warps, stages, *map(bool, options))

    def numbers(self) -> list[int]:
        """As the operator takes it: operators accept torch's types only."""
        return [int(number) for number in astuple(self)]

    def by_pointers(self) -> "Config":
        """The same tiles, for tensors that cannot be described."""
        return replace(self, descriptors=False, specialize=False, gluon=False)


Table = dict[Kernel, dict[int, tuple[Config, ...]]]
"""By kernel and by the largest width (of d_k and d_v) that the entry serves."""

# Half precision on GPUs with matrix instructions for warpgroups: compute capability 9.x and 10.x.
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

# On 10.x also these, by width, for problems that are not causal; for causal ones ptxas spills
# registers. Not on 9.x: there Triton 3.6 to 3.9 do not specialize kernels of 8 warps and fail to
# compile those of 4.
SPECIALIZED: dict[int, tuple[Config, ...]] = {
    64: (Config(128, 64, 8, 3, descriptors=True, specialize=True),),
    128: (Config(128, 64, 8, 3, descriptors=True, specialize=True),),
}
WARPGROUP_10: Table = WARPGROUP | {
    "forward": {
        width: (*listed[:2], *SPECIALIZED.get(width, ()), *listed[2:])
        for width, listed in WARPGROUP["forward"].items()
    }
}

# On 9.x also these, in half precision: the forward kernel in Gluon, whose tiles have these sizes.
GLUON: Table = {
    "forward": {
        64: (Config(128, 128, 8, 3, descriptors=True, gluon=True),),
        128: (Config(128, 128, 8, 2, descriptors=True, gluon=True),),
    }
}

WARPGROUP_9: Table = WARPGROUP | {
    "forward": {
        width: (*listed[:1], *GLUON["forward"].get(width, ()), *listed[1:])
        for width, listed in WARPGROUP["forward"].items()
    }
}

# Half precision on GPUs with matrix instructions for single warps: 8.x and 12.x.
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

# fp32 uses ordinary instructions on all GPUs (or, if TF32 is allowed, those for single warps).
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

# For few queries, in the kernels whose programs own tiles of queries; by bytes of an element.
FEW_QUERIES_TABLES: dict[int, Table] = {
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
    masked: bool = False,
) -> tuple[Config, ...]:
    """The entries for a problem, most promising first; `width` is the larger of d_k and d_v."""
    table = table_for(capability, item_bytes, causal=causal)
    if n_q <= FEW_QUERIES and kernel in FEW_QUERIES_TABLES[item_bytes]:
        table = FEW_QUERIES_TABLES[item_bytes]
    by_width = table[kernel]
    listed = by_width[min(widest for widest in by_width if width <= widest)]
    why_not = why_not_gluon(
        capability=capability, item_bytes=item_bytes, width=width, n_q=n_q, masked=masked
    )
    return tuple(config for config in listed if not (config.gluon and why_not))


def why_not_gluon(
    *, capability: tuple[int, int], item_bytes: int, width: int, n_q: int, masked: bool
) -> str | None:
    """Why hopper_forward.py is no candidate for a problem; None if it is one."""
    if capability[0] != 9:
        return f"it is for compute capability 9.x; this is {capability[0]}.{capability[1]}"
    if item_bytes != 2:
        return "it takes fp16 and bf16 only"
    if masked:
        return "it takes no key mask"
    narrowest, widest = min(GLUON["forward"]) // 2, max(GLUON["forward"])
    if not narrowest < width <= widest:
        return f"heads are {width} wide; it takes {narrowest + 1} to {widest}"
    if n_q <= FEW_QUERIES:
        return f"{n_q} queries leave most of its tiles of 128 empty"
    return None


def table_for(capability: tuple[int, int], item_bytes: int, *, causal: bool) -> Table:
    if item_bytes == 4:
        return FP32
    return {9: WARPGROUP_9, 10: WARPGROUP if causal else WARPGROUP_10}.get(capability[0], WARP)


def padded(width: int) -> int:
    """The width of a tile in registers: a power of two, at least the 16 of matrix instructions."""
    return max(16, 1 << (width - 1).bit_length())
