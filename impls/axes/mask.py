"""The mask in addition to `causal`, a file each in masks/, and the size of one that has a size."""

from collections.abc import Sequence
from typing import Literal

from ..masks import MASKS, WINDOWED
from ..problem_fields import ProblemFields
from .axis import Axis

ALL_MASKS = ("none", *MASKS)


def windowed(mask: str) -> bool:
    return mask in WINDOWED


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _check(p: ProblemFields) -> None:
    if p.window and not windowed(p.mask):
        raise ValueError(
            f"window ({p.window}) with mask {p.mask}, which has none; set mask to"
            f" {_listed(WINDOWED)}"
        )
    longer_keys = p.causal and p.seq_len < p.kv_seq_len
    if windowed(p.mask) and p.kv_seq_len not in (0, p.seq_len) and not longer_keys:
        raise ValueError(
            f"mask {p.mask} places each query at a key, but seq_len is {p.seq_len} and"
            f" kv_seq_len {p.kv_seq_len}; make them equal, or set causal, causal_align and a"
            " longer kv_seq_len"
        )


def _window(p: ProblemFields) -> int:
    return p.window or (MASKS[p.mask].default_window(p.kv_seq_len) if windowed(p.mask) else 0)


MASK = Axis(
    f"Mask in addition to causal: {_listed(ALL_MASKS)}.",
    option=f"{', '.join(ALL_MASKS)} (default: none).",
    given="none",
    scenario_wide=True,
    part=lambda p: f"{p.mask}{p.window or ''}" if p.mask != "none" else "",
    text=lambda value: "" if value == "none" else f"{value} mask",
    in_rows=(
        f"the mask in addition to `causal`: `{'`, `'.join(ALL_MASKS)}` (scenarios/README.md)."
        " Absent in rows of the first version, which had no masks"
    ),
    earliest="none",
    type=Literal[ALL_MASKS],
)
WINDOW = Axis(
    "Size of a mask that has one: "
    + ", ".join(f"{MASKS[name].window} ({name})" for name in WINDOWED)
    + ".",
    option=f"Sizes of masks that have one: {', '.join(WINDOWED)}.",
    scenario_wide=True,
    text=lambda value: f"window\u00a0{value}" if value else "",
    goes_with="mask",
    in_rows="size of a mask that has one, else 0; absent if `mask` is",
    earliest=0,
    check=_check,
    filled=_window,
)
