"""The loop of a kernel that does its matrix products: what is in it, and how busy it can keep them.

Read from machine code (SASS) as nvdisasm prints it. The model is in docs/method.md.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .architecture import PARTITION_COUNT
from .sass import CLASSES, is_matrix, mix, opcodes, spilled_bytes

_LABEL = re.compile(r"^(\.L_\w+):")
_BACK = re.compile(r"\bBRA(?:\.\w+)*\b[^;]*`\((\.L_\w+)\)")
_END = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+EXIT\b")  # without a condition
_SHAPE = re.compile(r"HGMMA\.64x(\d+)x16\b")
# how many groups of matrix products may still run when a wait returns
_WAIT = re.compile(r"WARPGROUP\.DEPBAR\.LE\s+gsb\d+,\s*(0x[0-9a-f]+)")
WAIT = "WARPGROUP.DEPBAR"
OF_PRODUCTS = ("loop_instructions", "loop_wait_count", "loop_copy_count", "serialized")
"""Fields of a row that a kernel without a loop over matrix products lacks."""
OF_CYCLES = (
    *("loop_tensor_cycles", "loop_exponential_cycles", "loop_issue_cycles", "loop_overlaps"),
    *("tensor_busy_most_ratio", "tensor_busy_limited_by"),
)
"""Those that only a loop with HGMMA has."""
SPECIALIZED = "USETMAXREG"  # hands registers from some warps to others: each kind has its own code
ALIKE = 1.1  # most instructions per product of loops that do the same, relative to the least
FEWEST_TO_JUDGE = 4  # matrix products of a loop: with fewer, each may be a group of its own

# Cycles that one instruction of a warp takes of its quarter of an SM of compute capability 9.0.
ISSUE_CYCLES = 1
EXP_CYCLES = 8  # 16 results per cycle and SM (CUDA Programming Guide, arithmetic throughput)
# 64 x 1 x 16 products, a quarter of them each, at 512 per cycle: an H100 does 4096 FLOP per cycle
# and SM with 16 bits (989 TFLOP/s, 132 SMs at 1.83 GHz; H100 white paper)
TENSOR_COLUMN_CYCLES = 0.5


class Loop(NamedTuple):
    """A loop's lines of disassembly, from its label to the branch back."""

    first: int
    last: int
    lines: Sequence[str]

    @property
    def names(self) -> list[str]:
        return opcodes("\n".join(self.lines))


def loops(disassembly: str) -> list[Loop]:
    """Every backward branch closes one, except from behind the end of the program.

    What stands there, such as waits that are tried again, jumps back into the middle.
    """
    lines = disassembly.splitlines()
    labels = {named[1]: at for at, line in enumerate(lines) if (named := _LABEL.match(line))}
    found: list[Loop] = []
    for at, line in enumerate(lines):
        branch = _BACK.search(line)
        start = labels.get(branch[1], at) if branch else at
        body = lines[start : at + 1]
        if start < at and not any(map(_END.match, body)):
            found.append(Loop(start, at, body))
    return found


def main_loop(disassembly: str) -> Loop | None:
    """The innermost loop with the fewest instructions per matrix product; None without one.

    Of the loops over whole tiles and over those at an edge, that is the first.
    """
    return min(_over_tiles(loops(disassembly)), key=_per_product, default=None)


def copy_count(disassembly: str) -> int:
    """In how many copies the main loop stands in the code.

    Where warps are specialized each copy is run by other warps, which do not wait for each other.
    """
    if SPECIALIZED not in disassembly:
        return 1
    each = [_per_product(one) for one in _over_tiles(loops(disassembly))]
    return sum(one <= ALIKE * min(each) for one in each)


def _over_tiles(found: Sequence[Loop]) -> list[Loop]:
    """Those that multiply matrices and have no such loop inside."""
    multiply = [one for one in found if any(map(is_matrix, one.names))]
    return [one for one in multiply if not _has_inside(one, multiply)]


def _has_inside(loop: Loop, others: Sequence[Loop]) -> bool:
    return any(
        loop.first <= other.first
        and other.last <= loop.last
        and (loop.first, loop.last) != (other.first, other.last)
        for other in others
    )


def _last(loop: Loop) -> int:
    return loop.last


def _moves_tiles(name: str) -> bool:
    return is_matrix(name) or name.startswith(CLASSES["TMA"])


def _per_product(loop: Loop) -> float:
    names = loop.names
    return len(names) / sum(map(is_matrix, names))


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
        if not _has_inside(whole, over_tiles):
            inside |= dict(enumerate(one.lines, start=one.first))
    stores, loads = spilled_bytes(opcodes("\n".join(inside.values())))
    found: dict[str, Any] = {"loop_spill_store_bytes": stores, "loop_spill_load_bytes": loads}
    main = main_loop(disassembly)
    if main is not None:
        names = main.names
        found["loop_instructions"] = mix(names)
        found["loop_copy_count"] = copy_count(disassembly)
        found["loop_wait_count"] = waits = sum(name.startswith(WAIT) for name in names)
        products = sum(name.startswith("HGMMA") for name in names)
        found["serialized"] = FEWEST_TO_JUDGE <= products <= waits
        found |= cycle_fields(main) or {}
    return found


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
    found: Mapping[str, Any], block_warp_count: int, sm_block_count: int
) -> tuple[float, str]:
    """The most of the time that the tensor cores can be busy, and what limits it.

    `found`: the fields of `loop_fields`. Every warp of a block is taken to do the same work: warps
    that only copy take little of the SM and change no ratio.
    Limits: `tensor` (nothing else), `exponentials`, `issue` (of instructions), `turns` (products
    and softmax of a block, or of each copy of the loop, take turns, and too few others share the SM
    to fill the gaps).
    """
    tensor, exponentials, issue = (
        found[f"loop_{name}_cycles"] for name in ("tensor", "exponential", "issue")
    )
    block_warps = block_warp_count / PARTITION_COUNT
    warps = sm_block_count * block_warps
    cycles = {
        "tensor": warps * tensor,
        "exponentials": warps * exponentials,
        "issue": warps * issue,
    }
    if not found["loop_overlaps"]:
        cycles["turns"] = (
            block_warps * (tensor + max(exponentials, issue)) / (found.get("loop_copy_count") or 1)
        )
    limit = max(cycles, key=lambda name: cycles[name])
    return cycles["tensor"] / cycles[limit], limit
