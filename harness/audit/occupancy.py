"""How many blocks of a kernel an SM holds at once, and which resource limits them. Pure functions.

The rules are those of NVIDIA's occupancy calculator (cuda_occupancy.h), which a test compiles and
compares. Its limit on barriers is left out: a block has at most 16 of them and reaches another
limit before. Tensor memory is not in the calculator: blocks beyond that limit would start and then
wait at their first allocation, so they do not count here.
"""

from dataclasses import dataclass
from typing import Literal

from .architecture import (
    MOST_BLOCK_WARP_COUNT,
    MOST_THREAD_REGISTER_COUNT,
    PARTITION_COUNT,
    RESERVED_SHARED_BYTES,
    SHARED_UNIT_BYTES,
    SM_REGISTER_COUNT,
    WARP_REGISTER_UNIT,
    Architecture,
)

Limit = Literal["registers", "shared_memory", "tensor_memory", "warps", "blocks"]
WARP_SIZE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What a block of a kernel needs."""

    warp_count: int
    thread_register_count: int
    shared_bytes: int
    tensor_memory_column_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """`block_limits`: how many blocks each resource has room for.

    `sm_block_count`: their minimum, 0 if not even one block fits. `limited_by`: the resources with
    that minimum. `allocated_...`: one block's share, rounded up to units and with the system's
    reserve.
    """

    allocated_register_count: int
    allocated_shared_bytes: int
    block_limits: dict[Limit, int]
    sm_block_count: int
    sm_warp_count: int
    occupancy_ratio: float
    limited_by: tuple[Limit, ...]


def occupancy(block: Block, sm: Architecture) -> Occupancy:
    warp_registers = _rounded_up(block.thread_register_count * WARP_SIZE, WARP_REGISTER_UNIT)
    allocated_shared = _rounded_up(block.shared_bytes + RESERVED_SHARED_BYTES, SHARED_UNIT_BYTES)
    limits: dict[Limit, int] = {
        "registers": _by_registers(block, warp_registers),
        "shared_memory": sm.shared_bytes // allocated_shared,
        "warps": sm.most_warp_count // block.warp_count,
        "blocks": sm.most_block_count,
    }
    if block.warp_count > MOST_BLOCK_WARP_COUNT:
        limits["warps"] = 0
    if sm.tensor_memory_column_count is not None and block.tensor_memory_column_count:
        limits["tensor_memory"] = sm.tensor_memory_column_count // block.tensor_memory_column_count
    blocks = min(limits.values())
    return Occupancy(
        allocated_register_count=warp_registers * block.warp_count,
        allocated_shared_bytes=allocated_shared,
        block_limits=limits,
        sm_block_count=blocks,
        sm_warp_count=blocks * block.warp_count,
        occupancy_ratio=blocks * block.warp_count / sm.most_warp_count,
        limited_by=tuple(name for name, count in limits.items() if count == blocks),
    )


def _by_registers(block: Block, warp_registers: int) -> int:
    """A warp belongs to one partition of the SM and takes registers from its share."""
    if block.thread_register_count > MOST_THREAD_REGISTER_COUNT:
        return 0
    if not warp_registers:
        return SM_REGISTER_COUNT
    partition_warps = SM_REGISTER_COUNT // PARTITION_COUNT // warp_registers
    return partition_warps * PARTITION_COUNT // block.warp_count


def _rounded_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
