"""Kinds of problems, for each of which a configuration is chosen once. Imports neither torch nor
triton.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

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
