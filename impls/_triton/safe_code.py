"""Read in a compiled kernel's code what would make it hang on a GPU, or race there.

Triton compiles both without a note, and they depend on its version. So tuning asks before it
launches a candidate, of the very code that would run.
"""

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

# ttng.async_tma_copy_global_to_local %q[...] ... : !tt.tensordesc<tensor<1x1x128x64xbf16, ...>>,
# !ttg.memdesc<1xi64, ...> -> !ttg.memdesc<64x64xbf16, ...>; from 3.7 on without `tensor<`
_COPY = re.compile(
    r"async_tma_copy_global_to_local .*?tensordesc<(?:tensor<)?([\dx]+)x\w.*"
    r"->\s*!ttg\.memdesc<([\dx]+)x\w"
)
_TOGETHER = re.compile(r"\bbar(?:rier)?\.sync")
_TOUCHES_A_TILE = re.compile(r"wgmma\.(?:mma_async|wait_group)|\b(?:ld|st)\.shared")
_ARRIVAL = "mbarrier.arrive.shared"


def why_unsafe(asm: Mapping[str, Any]) -> str | None:
    """Of the `asm` of a compiled kernel, its TTGIR and PTX; None if neither fault is in it."""
    faults = (*copies_amiss(asm.get("ttgir", "")), *arrivals_alone(asm.get("ptx", "")))
    return next(iter(faults), None)


def copies_amiss(ttgir: str) -> Iterator[str]:
    """Copies of another size than the tile that their barrier expects: it never completes.

    A descriptor copies the whole box that the host gave it, whatever the kernel made of the tile.
    """
    for box, tile in _COPY.findall(ttgir):
        if _size(box) != _size(tile):
            yield (
                f"it would hang: a descriptor copies {box} elements into a tile of {tile}, so that"
                " the barrier for the tile's bytes never completes"
            )


def arrivals_alone(ptx: str) -> Iterator[str]:
    """Arrivals at an mbarrier by one thread whose warpgroup may still read what it gives back.

    In the order of the code: since the last time that the warps met none may have touched a tile.
    """
    together = False
    for line in ptx.splitlines():
        if _TOGETHER.search(line):
            together = True
        elif _TOUCHES_A_TILE.search(line):
            together = False
        elif _ARRIVAL in line and not together:
            yield f"it would race: a thread gives a tile back for its warpgroup: {line.strip()}"


def _size(shape: str) -> int:
    return prod(map(int, shape.split("x")))
