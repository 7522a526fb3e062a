"""Instructions of machine code (SASS) by class, and the bytes of registers that they spill."""

from collections import Counter
from collections.abc import Sequence

from ...impls._triton.machine_code import PRODUCTS

CLASSES = {
    **PRODUCTS,
    # multiply and add in fp32
    "FFMA": ("FFMA",),
    # powers of two, for the softmax
    "MUFU.EX2": ("MUFU.EX2",),
    # asynchronous copies into shared memory, by every thread
    "LDGSTS": ("LDGSTS",),
    # waits of warps for each other, and for copies
    "barriers": ("BAR", "SYNCS", "DEPBAR", "LDGDEPBAR", "WARPSYNC", "WARPGROUP"),
    # whole tiles, by the copy engine of the SM
    "TMA": ("UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UBLKCP", "UBLKRED", "UBLKPF"),
    # with LDSM and STSM, which move tiles of matrices
    "shared": ("LDS", "STS", "ATOMS"),
    "global": ("LDG", "STG", "ATOMG", "RED."),
    # spilled registers
    "local": ("LDL", "STL"),
}
"""By the beginning of the opcode; the first class that fits counts."""
OTHER = "other"
_WIDTH_BYTES = {"128": 16, "64": 8, "16": 2, "U16": 2, "S16": 2, "8": 1, "U8": 1, "S8": 1}
_WORD_BYTES = 4


def mix(names: Sequence[str]) -> dict[str, int]:
    """How many instructions each class has; each instruction counts once."""
    counts = Counter(map(_class, names))
    return {name: counts[name] for name in (*CLASSES, OTHER)}


def spilled_bytes(names: Sequence[str]) -> tuple[int, int]:
    """Bytes per thread stored to local memory and loaded from it.

    `ptxas -v` calls them spill stores and spill loads.
    """
    stores, loads = (
        sum(_width_bytes(name) for name in names if name.startswith(kind))
        for kind in ("STL", "LDL")
    )
    return stores, loads


def _class(name: str) -> str:
    return next((known for known, begins in CLASSES.items() if name.startswith(begins)), OTHER)


def _width_bytes(name: str) -> int:
    return next(
        (_WIDTH_BYTES[part] for part in name.split(".")[1:] if part in _WIDTH_BYTES), _WORD_BYTES
    )
