"""Kinds of problems, for each of which a configuration is chosen once, and the candidates. Imports
neither torch nor triton.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, Self, TypeVar, get_args

from ..axes.lengths import canonical, sequences
from ..problem import Problem

BANDS = ("local", "chunked")  # masks that the kernels compute, and skip what lies outside
BATCH, HEADS = 2, 16  # at 4096 queries several programs for each SM of an H200
LONGEST = 4096  # longer sequences only repeat the same tiles
FEW_QUERIES = 16  # up to so many, as in decoding, tiles have the smallest number of queries
SHORT = 128  # up to so many queries and keys the smallest tiles (nearly) hold them: no choice
GLUON_WIDTHS = (64, 128)  # what hopper_forward.py pads heads to
DESCRIPTOR_ALIGNED_BYTES = 16  # cuTensorMapEncodeTiled: of addresses and strides


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """All on which a choice depends but the kernel.

    `problem` stands for all of its kind: batch and heads change the number of programs, not what
    one does; `queries` and `keys` are those of the longest sequence, rounded up to a power of two,
    at most LONGEST. `capability` is 90 for 9.0. `tf32`: whether products in fp32 may be rounded to
    it. `variant`: of the backend; "portable" leaves the kernel in Gluon out, "pointers" tensor
    descriptors too.
    """

    problem: Problem
    queries: int
    keys: int
    gpu: str
    capability: int
    tf32: bool = False
    variant: str = ""

    @classmethod
    def of(cls, problem: Problem, **more: Any) -> Self:
        """`more`: the other fields."""
        p, n_q, n_kv = problem, problem.seq_len - problem.empty_rows, problem.kv_seq_len
        if p.lengths:
            n_q, n_kv = map(max, zip(*sequences(p.lengths), strict=True))
        n_q, n_kv = (min(LONGEST, 1 << (n - 1).bit_length()) for n in (n_q, n_kv))
        sizes: dict[str, Any] = {"batch": BATCH, "seq_len": n_q, "kv_seq_len": n_kv}
        if p.lengths:
            sizes = {"lengths": canonical([(n_q, n_kv)] * BATCH), "seq_len": 0, "kv_seq_len": 0}
        elif p.causal:
            sizes["causal_align"] = "bottom_right"
        sizes |= {"scope": "core", "d_model": 1, "heads": HEADS, "kv_heads": HEADS}
        passes: Any = "forward" if p.page else "forward+backward"
        return cls(problem=replace(p, **sizes, passes=passes), queries=n_q, keys=n_kv, **more)

    @property
    def width(self) -> int:
        return max(self.problem.d_k, self.problem.d_v)

    @property
    def is_short(self) -> bool:
        return max(self.queries, self.keys) <= SHORT

    @property
    def describable(self) -> bool:
        """Whether descriptors can copy its tiles: they would read masked keys and the next
        sequence, follow no table of pages, and need aligned rows.
        """
        p = self.problem
        scattered = p.mask == "padding" or p.lengths or p.page
        aligned = all(w * p.item_bytes % DESCRIPTOR_ALIGNED_BYTES == 0 for w in (p.d_k, p.d_v))
        return self.variant != "pointers" and not scattered and aligned

    @property
    def why_not_gluon(self) -> str | None:
        """Why hopper_forward.py is no candidate; None if it is one."""
        p, (major, minor) = self.problem, divmod(self.capability, 10)
        narrowest, widest = min(GLUON_WIDTHS) // 2, max(GLUON_WIDTHS)
        fits, few = narrowest < self.width <= widest, self.queries <= FEW_QUERIES
        reasons = {
            f"triton:{self.variant} leaves it out": self.variant,
            f"sequences of up to {SHORT} have one configuration": self.is_short,
            f"it is for compute capability 9.x; this is {major}.{minor}": major != 9,
            "it takes fp16 and bf16 only": p.dtype == "fp32",
            "it takes no key mask": p.mask == "padding",
            f"it takes no {p.mask} mask": p.mask != "none",
            "it takes no softcap": p.softcap,
            "it takes no sinks": p.sinks,
            "it takes no pages": p.page,
            "it takes no ragged batch": p.lengths,
            f"heads are {self.width} wide; it takes {narrowest + 1} to {widest}": not fits,
            f"up to {FEW_QUERIES} queries leave most of its tiles of 128 empty": few,
            "no descriptor fits rows that are no multiple of 16 bytes": not self.describable,
        }
        return next((reason for reason, holds in reasons.items() if holds), None)


# ---- configurations ------------------------------------------------------------------------------

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
