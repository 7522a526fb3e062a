"""The loop of a kernel that does its matrix products: what is in it, and how busy it can keep them.

Read from machine code (SASS) as nvdisasm prints it. The model is in docs/method.md.
"""

import re
from collections.abc import Mapping
from math import ceil
from typing import Any

from ...impls._triton.machine_code import (
    Loop,
    has_inside,
    is_matrix,
    is_serialized,
    loops,
    main_loop,
    opcodes,
    wait_count,
)
from .architecture import PARTITION_COUNT
from .sass import CLASSES, mix, spilled_bytes

_SHAPE = re.compile(r"HGMMA\.64x(\d+)x16\b")
# how many groups of matrix products may still run when a wait returns
_WAIT = re.compile(r"WARPGROUP\.DEPBAR\.LE\s+gsb\d+,\s*(0x[0-9a-f]+)")
OF_PRODUCTS = ("loop_instructions", "loop_wait_count", "serialized")
"""Fields of a row that a kernel without a loop over matrix products lacks."""
OF_CYCLES = (
    *("loop_tensor_cycles", "loop_exponential_cycles", "loop_issue_cycles", "loop_overlaps"),
    *("tensor_busy_most_ratio", "tensor_busy_limited_by"),
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
    main = main_loop(disassembly)
    if main is not None:
        names = main.names
        found["loop_instructions"] = mix(names)
        found["loop_wait_count"] = wait_count(names)
        found["serialized"] = is_serialized(names)
        found |= cycle_fields(main) or {}
    return found


def _last(loop: Loop) -> int:
    return loop.last


def _moves_tiles(name: str) -> bool:
    return is_matrix(name) or name.startswith(CLASSES["TMA"])


# ---- how busy the tensor cores can be ------------------------------------------------------------


def cycle_fields(main: Loop) -> dict[str, Any] | None:
    """Cycles that an iteration of a warp takes of its quarter of the SM, by what it uses.

    Only of products by HGMMA, whose shape its opcode names; None for others. `loop_overlaps`: some
    wait leaves products running, so that those of a warp overlap with its own softmax.
    """
    columns = [int(n) for line in main.lines for n in _SHAPE.findall(line)]
    if not columns:
        return None
    names = main.names
    exponentials = sum(name.startswith("MUFU.EX2") for name in names)
    return {
        "loop_tensor_cycles": TENSOR_COLUMN_CYCLES * sum(columns),
        "loop_exponential_cycles": float(EXP_CYCLES * exponentials),
        "loop_issue_cycles": float(ISSUE_CYCLES * len(names)),
        "loop_overlaps": any(int(left, 16) for line in main.lines for left in _WAIT.findall(line)),
    }


def most_busy(
    found: Mapping[str, Any],
    block_warp_count: int,
    sm_block_count: int,
    asked_warp_count: int | None = None,
) -> tuple[float, str]:
    """The most of the time that the tensor cores can be busy, and what limits it.

    `found`: the fields of `cycle_fields`. If the compiler added warps to `asked_warp_count`, the
    block is specialized: one warpgroup of it copies, and each other one goes its own way. Otherwise
    every warp of a block is taken to do the same work. Limits: `tensor` (nothing else),
    `exponentials`, `issue` (of instructions), `turns` (products and softmax of the same warps take
    turns, and too few others share the SM to fill the gaps).
    """
    tensor, exponentials, issue = (
        found[f"loop_{name}_cycles"] for name in ("tensor", "exponential", "issue")
    )
    warps = together = block_warp_count / PARTITION_COUNT
    if asked_warp_count is not None and PARTITION_COUNT < block_warp_count > asked_warp_count:
        warps, together = ceil(warps) - 1, 1
    every = sm_block_count * warps
    cycles = {
        "tensor": every * tensor,
        "exponentials": every * exponentials,
        "issue": every * issue,
    }
    if not found["loop_overlaps"]:
        cycles["turns"] = together * (tensor + max(exponentials, issue))
    limit = max(cycles, key=lambda name: cycles[name])
    return cycles["tensor"] / cycles[limit], limit
