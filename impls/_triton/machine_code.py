"""Read a disassembly of machine code (SASS): opcodes, loops, and the loop that multiplies matrices.

Instructions count as they stand in the code, not as often as they run.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

# /*0e10*/  @!P0 LDGSTS.E.BYPASS.128 [R12+0x4000], [R8.64] ;
_INSTRUCTION = re.compile(
    r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", re.MULTILINE
)
_LABEL = re.compile(r"^(\.L_\w+):")
_BACK = re.compile(r"\bBRA(?:\.\w+)*\b[^;]*`\((\.L_\w+)\)")
_END = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+EXIT\b")  # without a condition
PADDING = "NOP"
PRODUCTS = (
    *("HMMA", "IMMA", "QMMA", "OMMA"),  # by one warp
    # by four warps together, from shared memory: compute capability 9.0
    *("HGMMA", "IGMMA", "QGMMA"),
    # into tensor memory: compute capability 10.x and 11.0
    *("UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA"),
)
"""Beginnings of the opcodes that multiply matrices."""
WAIT = "WARPGROUP.DEPBAR"
FEWEST_TO_JUDGE = 4  # matrix products of a loop: with fewer, each may be a group of its own


def opcodes(disassembly: str) -> list[str]:
    """The opcodes in nvdisasm's output, in order, without padding."""
    return [name for name in _INSTRUCTION.findall(disassembly) if name != PADDING]


def is_matrix(name: str) -> bool:
    """Whether it multiplies matrices."""
    return name.startswith(PRODUCTS)


class Loop(NamedTuple):
    """A loop's lines of disassembly, from its label to the branch back, and their opcodes."""

    first: int
    last: int
    lines: Sequence[str]
    names: Sequence[str]


def loops(disassembly: str) -> list[Loop]:
    """Every backward branch closes one, except from behind the end of the program.

    What stands there, such as waits that are tried again, jumps back into the middle.
    """
    lines = disassembly.splitlines()
    labels = {named[1]: at for at, line in enumerate(lines) if (named := _LABEL.match(line))}
    found: list[Loop] = []
    end = -1  # the last end of the program so far
    for at, line in enumerate(lines):
        if "EXIT" in line and _END.match(line):
            end = at
        branch = _BACK.search(line) if "BRA" in line else None
        start = labels.get(branch[1], at) if branch else at
        if end < start < at:
            body = lines[start : at + 1]
            found.append(Loop(start, at, body, opcodes("\n".join(body))))
    return found


def main_loop(found: Sequence[Loop]) -> Loop | None:
    """The innermost loop with the fewest instructions per matrix product; None without one.

    Of the loops over whole tiles and over those at an edge, that is the first.
    """
    multiply = [one for one in found if any(map(is_matrix, one.names))]
    innermost = [one for one in multiply if not has_inside(one, multiply)]
    return min(innermost, key=_per_product, default=None)


def has_inside(loop: Loop, others: Sequence[Loop]) -> bool:
    """Whether one of them, another than itself, lies within it."""
    return any(
        loop.first <= other.first
        and other.last <= loop.last
        and (loop.first, loop.last) != (other.first, other.last)
        for other in others
    )


def _per_product(loop: Loop) -> float:
    return len(loop.names) / sum(map(is_matrix, loop.names))


def is_serialized(names: Sequence[str]) -> bool:
    """Whether a loop of these opcodes waits after every matrix product of a warpgroup."""
    products = sum(name.startswith("HGMMA") for name in names)
    return FEWEST_TO_JUDGE <= products <= sum(name.startswith(WAIT) for name in names)
