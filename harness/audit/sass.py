"""Machine code (SASS) as nvdisasm prints it: its instructions by class, the bytes of registers that
they spill, and the loop that does the matrix products, with the cycles that it takes.

The model of the cycles is in docs/method.md.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...impls._triton.machine_code import (
    PRODUCTS,
    WAIT,
    Loop,
    has_inside,
    is_matrix,
    is_serialized,
    loops,
    main_loop,
    opcodes,
    wait_count,
)

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


# ---- loops ---------------------------------------------------------------------------------------

_SHAPE = re.compile(r"HGMMA\.64x(\d+)x16\b")
# how many groups of matrix products may still run when a wait returns
_WAIT = re.compile(r"WARPGROUP\.DEPBAR\.LE\s+gsb\d+,\s*(0x[0-9a-f]+)")
OF_PRODUCTS = ("loop_instructions", "loop_wait_count", "serialized")
"""Fields of a row that a kernel without a loop over matrix products lacks."""
OF_CYCLES = (
    *("loop_tensor_cycles", "loop_exponential_cycles", "loop_issue_cycles", "loop_overlaps"),
    *("loop_parts", "tensor_busy_most_ratio", "tensor_busy_limited_by"),
)
"""Those that only a loop with HGMMA has."""

# Cycles that one instruction of a warp takes of its quarter of an SM of compute capability 9.0.
ISSUE_CYCLES = 1
EXP_CYCLES = 8  # 16 results per cycle and SM (CUDA Programming Guide, arithmetic throughput)
# 64 x 1 x 16 products, a quarter of them each, at 512 per cycle: an H100 does 4096 FLOP per cycle
# and SM with 16 bits (989 TFLOP/s, 132 SMs at 1.83 GHz; H100 white paper)
TENSOR_COLUMN_CYCLES = 0.5


def loop_fields(disassembly: str) -> dict[str, Any]:
    """The fields of a kernel's row that come from its loops; those that it has no answer for lack.

    Spilled bytes are those of all loops, each instruction once; but a loop around loops over tiles,
    as of a persistent kernel over its tiles of queries, runs too seldom to count.
    """
    inside: dict[int, str] = {}
    found_loops = loops(disassembly)
    over_tiles = [one for one in found_loops if any(map(_moves_tiles, one.names))]
    for one in found_loops:
        # Several branches back to one label, as of `continue`, are one loop.
        whole = max((other for other in found_loops if other.first == one.first), key=_last)
        if not has_inside(whole, over_tiles):
            inside |= dict(enumerate(one.lines, start=one.first))
    stores, loads = spilled_bytes(opcodes("\n".join(inside.values())))
    found: dict[str, Any] = {"loop_spill_store_bytes": stores, "loop_spill_load_bytes": loads}
    main = main_loop(found_loops)
    if main is not None:
        found["loop_instructions"] = mix(main.names)
        found["loop_wait_count"] = wait_count(main.names)
        found["serialized"] = is_serialized(main.names)
        found |= cycle_fields(main) or {}
    return found


def _last(loop: Loop) -> int:
    return loop.last


def _moves_tiles(name: str) -> bool:
    return is_matrix(name) or name.startswith(CLASSES["TMA"])


# ---- cycles --------------------------------------------------------------------------------------


def cycle_fields(main: Loop) -> dict[str, Any] | None:
    """Cycles that an iteration of a warp takes of its quarter of the SM, by what it uses.

    Only of products by HGMMA, whose shape its opcode names; None for others. `loop_overlaps`: some
    wait leaves products running, so that those of a warp overlap with its own softmax.
    """
    parts = loop_parts(main)
    if not parts:
        return None
    found: dict[str, Any] = {
        f"loop_{name}_cycles": sum(part[f"{name}_cycles"] for part in parts)
        for name in ("tensor", "exponential", "issue")
    }
    found["loop_overlaps"] = any(
        int(left, 16) for line in main.lines for left in _WAIT.findall(line)
    )
    return found | {"loop_parts": parts}


def loop_parts(main: Loop) -> list[dict[str, float]]:
    """The same cycles in the order of the code: a part for each wait that has products before it.

    A part begins with its first product and ends before that of the next part, so it has the code
    that follows its wait. The loop goes round: what stands before the first product is the last
    part's. Empty if no product is an HGMMA whose shape the opcode names.
    """
    parts: list[dict[str, float]] = []
    before = _no_cycles()
    waited = True
    for line in main.lines:
        for name in opcodes(line):
            columns = sum(map(int, _SHAPE.findall(line)))
            if columns and waited:
                parts.append(_no_cycles())
            waited = not columns and (waited or name.startswith(WAIT))
            part = parts[-1] if parts else before
            part["tensor_cycles"] += TENSOR_COLUMN_CYCLES * columns
            part["exponential_cycles"] += EXP_CYCLES * name.startswith("MUFU.EX2")
            part["issue_cycles"] += ISSUE_CYCLES
    if parts:
        for name, cycles in before.items():
            parts[-1][name] += cycles
    return parts


def _no_cycles() -> dict[str, float]:
    return {"tensor_cycles": 0.0, "exponential_cycles": 0.0, "issue_cycles": 0.0}
