"""The most of the time that a kernel can keep the tensor cores busy, by the cycles of its loop.

docs/method.md has the model.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

from .occupancy import PARTITION_COUNT

LIMITS = {
    "tensor": "matrix products",
    "exponentials": "exponentials",
    "issue": "instructions",
    "turns": "turns",
}
"""`turns`: products and softmax of the same warps take turns, and too few others share the SM."""


def is_specialized(block_warp_count: int, asked_warp_count: int | None) -> bool:
    """Whether the compiler added warps to those asked for: then one warpgroup of them copies."""
    return asked_warp_count is not None and PARTITION_COUNT < block_warp_count > asked_warp_count


def most_busy(
    found: Mapping[str, Any],
    block_warp_count: int,
    sm_block_count: int,
    asked_warp_count: int | None = None,
) -> tuple[float, str]:
    """The share of the time, and which of LIMITS sets it.

    `found`: the cycles of a warp in an iteration, as in its row. In a specialized block each
    warpgroup but the one that copies goes its own way; otherwise every warp of a block is taken to
    do the same work.
    """
    tensor, exponentials, issue = (
        found[f"loop_{name}_cycles"] for name in ("tensor", "exponential", "issue")
    )
    warps = together = block_warp_count / PARTITION_COUNT
    if is_specialized(block_warp_count, asked_warp_count):
        warps, together = ceil(warps) - 1, 1
    every = sm_block_count * warps
    cycles = {
        "tensor": every * tensor,
        "exponentials": every * exponentials,
        "issue": every * issue,
    }
    if not found.get("loop_overlaps"):
        cycles["turns"] = together * (tensor + max(exponentials, issue))
    limit = max(cycles, key=lambda name: cycles[name])
    return cycles["tensor"] / cycles[limit], limit
