"""Block sizes of the Triton kernels: few for each kind of problem, which tuning.py times.

Each costs seconds of compilation on first use. They are what an H200 showed to be fastest of some
ninety (docs/method.md, "Kernels, seen on an H200"), and elsewhere what compilers made neither spill
registers in a loop nor run its matrix products one at a time. At least one of each cell fits into
the shared memory of the smallest GPUs: 99 KiB, or 227 KiB for WARPGROUP. The last one uses no
descriptors. Imports neither torch nor triton.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeVar, get_args

from .kinds import FEW_QUERIES, Kind

Kernel = Literal["forward", "grad_q", "grad_kv"]
T = TypeVar("T")
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
WIDEST = 256  # the widest head: beyond it no tile fits into registers
SMALLEST_BLOCK = 16  # queries, keys or columns of a tile: the least that matrix instructions take


@dataclass(frozen=True, slots=True)
class Config:
    """Tile sizes and pipelining of a kernel, which iterates over tiles of queries or of keys.

    `stages` is the depth of that pipeline. `descriptors`: the tensor memory accelerator copies the
    tiles, instead of one pointer per element. `gluon`: the forward kernel of hopper_forward.py,
    which has descriptors and specialized warps of its own; `warps` are those of its consumers.
    """

    block_q: int
    block_kv: int
    warps: int
    stages: int
    descriptors: bool = False
    gluon: bool = False


def described(block_q: int, block_kv: int, warps: int, stages: int) -> Config:
    return Config(block_q, block_kv, warps, stages, descriptors=True)


Table = dict[Kernel, dict[int, tuple[Config, ...]]]
"""By kernel and by the largest width (of d_k and d_v) that the entry serves."""
Single = dict[Kernel, dict[int, Config]]

# Half precision on GPUs with matrix instructions for warpgroups: compute capability 9.x and 10.x.
WARPGROUP: Table = {
    "forward": {
        64: (described(64, 128, 4, 2), described(128, 64, 8, 3), Config(64, 64, 4, 3)),
        128: (described(64, 64, 4, 3), described(128, 128, 8, 3), Config(64, 64, 4, 3)),
        256: (described(128, 64, 8, 2), Config(128, 32, 8, 2), Config(64, 32, 4, 2)),
    },
    "grad_q": {
        64: (described(128, 64, 8, 2), described(64, 64, 4, 2), Config(64, 64, 4, 2)),
        128: (described(64, 64, 4, 2), Config(128, 64, 8, 2), Config(64, 32, 4, 2)),
        256: (described(128, 32, 8, 2), Config(128, 32, 8, 2), Config(64, 32, 8, 2)),
    },
    "grad_kv": {
        64: (described(64, 64, 4, 2), Config(64, 64, 4, 2)),
        128: (described(32, 64, 4, 2), Config(32, 64, 4, 2)),
        256: (described(32, 32, 8, 2), Config(32, 32, 8, 2), Config(16, 32, 4, 2)),
    },
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
FP32: Single = {
    "forward": {64: Config(32, 32, 4, 2), 128: Config(32, 16, 8, 2), 256: Config(16, 16, 4, 1)},
    "grad_q": {64: Config(32, 32, 8, 2), 128: Config(32, 16, 4, 2), 256: Config(32, 16, 8, 2)},
    "grad_kv": {64: Config(16, 32, 4, 2), 128: Config(16, 16, 4, 2), 256: Config(16, 16, 8, 1)},
}

# For few queries, in the kernels whose programs own tiles of queries.
FEW: Single = {
    "forward": {64: Config(16, 64, 4, 3), 128: Config(16, 64, 4, 3), 256: Config(16, 32, 4, 2)},
    "grad_q": {64: Config(16, 64, 4, 2), 128: Config(16, 64, 4, 2), 256: Config(16, 32, 4, 2)},
}
FEW_FP32: Single = {
    "forward": {64: Config(16, 64, 4, 2), 128: Config(16, 16, 4, 2), 256: Config(16, 16, 8, 2)},
    "grad_q": {64: Config(16, 64, 8, 2), 128: Config(16, 16, 4, 2), 256: Config(16, 16, 8, 2)},
}

# First of the forward kernel's on 9.x: the one in Gluon, whose tiles have these sizes.
GLUON: Single = {
    "forward": {
        64: Config(128, 128, 8, 3, descriptors=True, gluon=True),
        128: Config(128, 128, 8, 2, descriptors=True, gluon=True),
    }
}


SINGLES = (FP32, FEW, FEW_FP32, GLUON)


def candidates(kernel: Kernel, kind: Kind) -> tuple[Config, ...]:
    """The entries for a kind of problems, most promising first; of short ones the last alone."""
    is_fp32 = kind.problem.dtype == "fp32"
    if kind.queries <= FEW_QUERIES and kernel != "grad_kv":
        return (_cell((FEW_FP32 if is_fp32 else FEW)[kernel], kind),)
    if is_fp32:
        return (_cell(FP32[kernel], kind),)
    found = _cell((WARPGROUP if kind.capability // 10 in (9, 10) else WARP)[kernel], kind)
    if kind.is_short:
        return found[-1:]
    if kernel == "forward" and not kind.why_not_gluon:
        found = (_cell(GLUON[kernel], kind), *found)
    return tuple(one for one in found if kind.describable or not one.descriptors)


def _cell(by_width: Mapping[int, T], kind: Kind) -> T:
    return by_width[min(widest for widest in by_width if kind.width <= widest)]


def listed() -> list[tuple[Kernel, Config]]:
    """Every kernel in every configuration, once."""
    found = [(name, one) for table in SINGLES for name in table for one in table[name].values()]
    for table in (WARPGROUP, WARP):
        found += [(name, one) for name in table for one in chain(*table[name].values())]
    return [*dict.fromkeys(found)]


def padded(width: int) -> int:
    """The width of a tile in registers: a power of two that matrix instructions take."""
    return max(SMALLEST_BLOCK, 1 << (width - 1).bit_length())
