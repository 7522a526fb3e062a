"""Block sizes of the Triton kernels: the candidates that `prepare` times on a GPU.

The lists are short, because each entry costs seconds of compilation on first use. They were chosen
from some 300 configurations compiled by Triton 3.9, some by 3.6, for capability 8.0, 9.0 and 10.0.
An entry is listed if, on full-width problems without a key mask, its machine code had neither
registers spilled in a loop nor matrix products that run one at a time, and if it fits into
shared memory: 227 KiB for WARPGROUP; elsewhere at least one entry of each list fits into 99 KiB,
which the smallest GPUs have. Tuning decides; the order is by a bound of
how busy the tensor cores can be and by blocks per SM, and for 9.x by what an H200 showed of them
(docs/method.md, "Kernels, seen on an H200").

Entries with descriptors come first where they exist: copies of whole tiles leave registers to the
products, and some tiles spill by pointers. The last entry of each list uses none and is small.
`without_descriptors` is what replaces one if the tensors cannot be described.
"""

import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import Literal, get_args

Kernel = Literal["forward", "grad_q", "grad_kv"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
BANDS = ("local", "chunked")  # masks that the kernels compute, and skip what lies outside
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
            Config(64, 128, 4, 2, descriptors=True),
            Config(128, 64, 8, 3, descriptors=True),
            Config(128, 128, 8, 3, descriptors=True),
            Config(128, 64, 8, 3),
            Config(64, 64, 4, 3),
        ),
        128: (
            Config(64, 64, 4, 3, descriptors=True),
            Config(128, 128, 8, 3, descriptors=True),
            Config(128, 64, 8, 3, descriptors=True),
            Config(128, 128, 8, 2),
            Config(64, 64, 4, 3),
        ),
        256: (
            Config(128, 64, 8, 2, descriptors=True),
            Config(128, 32, 8, 2),
            Config(64, 32, 4, 2),
        ),
    },
    "grad_q": {
        64: (
            Config(128, 64, 8, 2, descriptors=True),
            Config(64, 64, 4, 2, descriptors=True),
            Config(128, 128, 8, 2, descriptors=True),
            Config(64, 64, 4, 2),
        ),
        128: (
            Config(64, 64, 4, 2, descriptors=True),
            Config(128, 64, 8, 2, descriptors=True),
            Config(128, 64, 8, 2),
            Config(64, 32, 4, 2),
        ),
        256: (Config(128, 32, 8, 2, descriptors=True), Config(128, 32, 8, 2), Config(64, 32, 8, 2)),
    },
    "grad_kv": {
        64: (
            Config(64, 64, 4, 2, descriptors=True),
            Config(64, 128, 8, 2, descriptors=True),
            Config(64, 64, 4, 2),
        ),
        128: (
            Config(32, 64, 4, 2, descriptors=True),
            Config(64, 128, 8, 2, descriptors=True),
            Config(64, 64, 8, 2, descriptors=True),
            Config(32, 64, 4, 2),
        ),
        256: (Config(32, 32, 8, 2, descriptors=True), Config(32, 32, 8, 2), Config(16, 32, 4, 2)),
    },
}

# On 10.x also these, whose warps Triton specializes. Not on 9.x: there Triton 3.6 halves the copy
# of the queries, but neither its descriptor nor where it starts, so that its barrier never
# completes, and later versions fail to compile it.
SPECIALIZED: Table = {
    "forward": {
        64: (Config(128, 64, 8, 3, descriptors=True, specialize=True),),
        128: (Config(128, 64, 8, 3, descriptors=True, specialize=True),),
    }
}
# Of grad_kv, for heads of 128 on 9.x: Triton 3.6 spills 12 bytes in its loop, 3.9 nothing.
SPILLS_BY_3_6 = Config(64, 128, 8, 2, descriptors=True)

# On 9.x also these, as second: the forward kernel in Gluon, whose tiles have these sizes.
GLUON: Table = {
    "forward": {
        64: (Config(128, 128, 8, 3, descriptors=True, gluon=True),),
        128: (Config(128, 128, 8, 2, descriptors=True, gluon=True),),
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
        128: (Config(32, 16, 8, 2), Config(32, 16, 4, 2)),
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
    beyond: str = "",
    triton: str | None = None,
) -> tuple[Config, ...]:
    """The entries for a problem, most promising first; `width` is the larger of d_k and d_v.

    `beyond`: what the problem has that hopper_forward.py does not compute, "" for nothing.
    `triton`: the version that compiles them, by default that of the installed one.
    """
    table = table_for(capability, item_bytes, causal=causal, triton=triton)
    if n_q <= FEW_QUERIES and kernel in FEW_QUERIES_TABLES[item_bytes]:
        table = FEW_QUERIES_TABLES[item_bytes]
    listed = _for_width(table[kernel], width)
    why_not = why_not_gluon(
        capability=capability, item_bytes=item_bytes, width=width, n_q=n_q, beyond=beyond
    )
    return tuple(config for config in listed if not (config.gluon and why_not))


def why_not_gluon(
    *, capability: tuple[int, int], item_bytes: int, width: int, n_q: int, beyond: str
) -> str | None:
    """Why hopper_forward.py is no candidate for a problem; None if it is one."""
    if capability[0] != 9:
        return f"it is for compute capability 9.x; this is {capability[0]}.{capability[1]}"
    if item_bytes != 2:
        return "it takes fp16 and bf16 only"
    if beyond:
        return f"it takes no {beyond}"
    narrowest, widest = min(GLUON["forward"]) // 2, max(GLUON["forward"])
    if not narrowest < width <= widest:
        return f"heads are {width} wide; it takes {narrowest + 1} to {widest}"
    if n_q <= FEW_QUERIES:
        return f"{n_q} queries leave most of its tiles of 128 empty"
    return None


def table_for(
    capability: tuple[int, int], item_bytes: int, *, causal: bool, triton: str | None = None
) -> Table:
    if item_bytes == 4:
        return FP32
    major = capability[0]
    if major not in (9, 10):
        return WARP
    forward, grad_kv = WARPGROUP["forward"], WARPGROUP["grad_kv"]
    if major == 9:
        forward = _inserted(forward, GLUON["forward"], place=1)
    else:  # later for causal problems: their single loop masks every tile
        forward = _inserted(forward, SPECIALIZED["forward"], place=-1 if causal else 1)
    if major == 9 and _version(triton) == (3, 6):
        others = tuple(one for one in grad_kv[128] if one != SPILLS_BY_3_6)
        grad_kv = grad_kv | {128: others}
    return WARPGROUP | {"forward": forward, "grad_kv": grad_kv}


def _inserted(
    listed: dict[int, tuple[Config, ...]], more: dict[int, tuple[Config, ...]], *, place: int
) -> dict[int, tuple[Config, ...]]:
    return {
        width: (*configs[:place], *more.get(width, ()), *configs[place:])
        for width, configs in listed.items()
    }


def without_descriptors(kernel: Kernel, config: Config, width: int) -> Config:
    """What replaces a configuration if the tensors cannot be described.

    The same tiles, or the first listed ones by pointers if these would spill registers.
    """
    same, listed = config.by_pointers(), _for_width(WARPGROUP[kernel], width)
    tables = (SPECIALIZED["forward"], GLUON["forward"])
    more = [one for by_width in tables for one in chain(*by_width.values())]
    if config not in (*listed, *more) or same in listed:
        return same
    return next(one for one in listed if not one.descriptors)


def _for_width(by_width: dict[int, tuple[Config, ...]], width: int) -> tuple[Config, ...]:
    return by_width[min(widest for widest in by_width if width <= widest)]


def _version(triton: str | None) -> tuple[int, ...]:
    """Major and minor, () if unknown."""
    found = re.match(r"(\d+)\.(\d+)", _installed() if triton is None else triton)
    return tuple(map(int, found.groups())) if found else ()


@cache
def _installed() -> str:
    """Triton's version, without importing it; "" if there is none."""
    try:
        return version("triton")
    except PackageNotFoundError:
        return ""


def padded(width: int) -> int:
    """The width of a tile in registers: a power of two, at least the 16 of matrix instructions."""
    return max(16, 1 << (width - 1).bit_length())
