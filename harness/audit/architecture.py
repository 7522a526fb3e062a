"""What one SM holds, by compute capability: data; and how a user may write a capability.

Sources: CUDA Programming Guide, appendix Compute Capabilities, tables 30 and 31 (blocks, warps,
shared memory), and the header of NVIDIA's occupancy calculator, cuda_occupancy.h (units of
allocation; blocks by compute capability). The names of GPUs are those of
developer.nvidia.com/cuda-gpus.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What differs between SMs.

    `tensor_memory_column_count`: columns of 128 lanes of 32 bits (PTX ISA, Tensor Memory).
    """

    name: str
    gpus: str
    most_warp_count: int
    most_block_count: int
    shared_bytes: int
    tensor_memory_column_count: int | None = None


def _sm(
    name: str,
    gpus: str,
    warps: int,
    blocks: int,
    shared_kib: int,
    tensor_columns: int | None = None,
) -> Architecture:
    return Architecture(
        name=name,
        gpus=gpus,
        most_warp_count=warps,
        most_block_count=blocks,
        shared_bytes=shared_kib * KIB,
        tensor_memory_column_count=tensor_columns,
    )


ARCHITECTURES: Mapping[Capability, Architecture] = {
    (8, 0): _sm("Ampere", "A100, A30", 64, 32, 164),
    (8, 6): _sm("Ampere", "A10, A40, RTX 30", 48, 16, 100),
    (8, 7): _sm("Ampere", "Jetson Orin", 48, 16, 164),
    (8, 9): _sm("Ada Lovelace", "L4, L40, RTX 40", 48, 24, 100),
    (9, 0): _sm("Hopper", "H100, H200, GH200", 64, 32, 228),
    (10, 0): _sm("Blackwell", "B200, GB200", 64, 32, 228, 512),
    (10, 3): _sm("Blackwell", "B300, GB300", 64, 32, 228, 512),
    (11, 0): _sm("Blackwell", "Jetson Thor", 48, 24, 228, 512),
    (12, 0): _sm("Blackwell", "RTX 50, RTX PRO 6000", 48, 24, 100),
    (12, 1): _sm("Blackwell", "DGX Spark", 48, 24, 100),
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
