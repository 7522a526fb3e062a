"""What one SM holds, by compute capability, and how many blocks of a kernel. Pure functions.

Limits: CUDA Programming Guide, appendix Compute Capabilities, tables 30 and 31 (blocks, warps,
shared memory), and the header of NVIDIA's occupancy calculator, cuda_occupancy.h (units of
allocation; blocks by compute capability). The names of GPUs are those of
developer.nvidia.com/cuda-gpus.

The rules are those of the calculator, which a test compiles and compares. Its limit on barriers is
left out: a block has at most 16 of them and reaches another limit before. Tensor memory is not in
it: blocks beyond that limit would start and then wait at their first allocation, so they do not
count here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..files.errors import BadInput

Capability = tuple[int, int]
KIB = 1 << 10
OLDEST = (8, 0)  # earlier GPUs have neither bf16 nor asynchronous copies, which our kernels use

SM_REGISTER_COUNT = 64 << 10  # of 32 bits; a single block may have them all
MOST_THREAD_REGISTER_COUNT = 256  # the hardware's limit; compilers stop at 255
MOST_BLOCK_WARP_COUNT = 32  # 1024 threads
PARTITION_COUNT = 4  # each with its own scheduler and a quarter of the registers
WARP_REGISTER_UNIT = 256  # a warp gets registers in this unit
SHARED_UNIT_BYTES = 128  # a block gets shared memory in this unit
RESERVED_SHARED_BYTES = KIB  # for the system, from each block's shared memory


class Architecture(NamedTuple):
    """What differs between SMs.

    `tensor_memory_column_count`: columns of 128 lanes of 32 bits (PTX ISA, Tensor Memory).
    """

    name: str
    gpus: str
    most_warp_count: int
    most_block_count: int
    shared_kib: int
    tensor_memory_column_count: int | None = None

    @property
    def shared_bytes(self) -> int:
        return self.shared_kib * KIB


ARCHITECTURES: Mapping[Capability, Architecture] = {
    (8, 0): Architecture("Ampere", "A100, A30", 64, 32, 164),
    (8, 6): Architecture("Ampere", "A10, A40, RTX 30", 48, 16, 100),
    (8, 7): Architecture("Ampere", "Jetson Orin", 48, 16, 164),
    (8, 9): Architecture("Ada Lovelace", "L4, L40, RTX 40", 48, 24, 100),
    (9, 0): Architecture("Hopper", "H100, H200, GH200", 64, 32, 228),
    (10, 0): Architecture("Blackwell", "B200, GB200", 64, 32, 228, 512),
    (10, 3): Architecture("Blackwell", "B300, GB300", 64, 32, 228, 512),
    (11, 0): Architecture("Blackwell", "Jetson Thor", 48, 24, 228, 512),
    (12, 0): Architecture("Blackwell", "RTX 50, RTX PRO 6000", 48, 24, 100),
    (12, 1): Architecture("Blackwell", "DGX Spark", 48, 24, 100),
}


def parse_capabilities(text: str) -> tuple[Capability, ...]:
    """`80,9.0,sm_100` in this order, each once. Raises BadInput."""
    return tuple(dict.fromkeys(_parse(one.strip()) for one in text.split(",")))


def _parse(text: str) -> Capability:
    found = re.fullmatch(r"(?:sm_)?(\d{1,2})\.?(\d)", text)
    if found is None:
        raise BadInput(
            f"--arch: {text!r} is not a compute capability; expected e.g. 80, 90, 100, separated"
            " by commas"
        )
    capability = int(found[1]), int(found[2])
    if capability < OLDEST:
        raise BadInput(f"--arch: {text}: our kernels need compute capability 8.0 or newer, e.g. 80")
    return capability


def dotted(capability: Capability) -> str:
    """As NVIDIA writes it: 9.0."""
    return f"{capability[0]}.{capability[1]}"


Limit = Literal["registers", "shared_memory", "tensor_memory", "warps", "blocks"]
WARP_SIZE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What a block of a kernel needs."""

    warp_count: int
    thread_register_count: int
    shared_bytes: int
    tensor_memory_column_count: int = 0


class Occupancy(NamedTuple):
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
