"""The fields of a row of kind `kernel`: a kernel that was compiled, and what was read of it."""

from typing import Any

from pydantic import Field

from .values import (
    Config,
    Count,
    Counts,
    Cycles,
    Each,
    Int,
    Number,
    Object,
    Part,
    Reasons,
    StatusWord,
)


class KernelPlan(Part):
    """What run.json says of a kernel."""

    compute_capability: str
    """the GPU's, as `9.0`"""
    kernel: str
    """`forward`, `grad_q` or `grad_kv`"""
    d_k: Int
    d_v: Int
    """the largest head widths that the configuration is for"""
    dtype: str
    causal: bool
    """as in a row of a case"""
    masked: bool = False
    """whether keys are masked"""
    tf32: bool = False
    """whether fp32 is multiplied as TF32"""
    config: Config
    """all fields of the configuration: `block_q`, `block_kv` (queries and keys of a tile), `warps`,
    `stages`, ..."""
    rank: Int
    """its place among the configurations of this kernel, dtype and width: 1 is tried first; those
    for few queries come last"""


class Compiled(Part):
    """What the compilers made of a kernel."""

    kind: str
    """`kernel`"""
    case: str
    """stable id, for example
    `kernel-sm90-forward-bf16-d_k128-d_v128-causal-block_q128-block_kv128-warps8-stages2`"""
    device: str
    """`cpu`: where it was compiled; nothing was run"""
    architecture: str | None = None
    """the GPU's architecture, and GPUs that have it"""
    status: StatusWord
    """`ok`, `error` (it does not compile), `crashed` or `timeout` (the compiler did), or
    `interrupted`"""
    triton: str | None = None
    ptxas: str | None = None
    """versions of the compilers; the row holds for these"""
    block_warp_count: Count | None = None
    """warps of a block, including those that the compiler added"""
    thread_register_count: Count | None = None
    """registers of a thread"""
    thread_stack_bytes: Count | None = None
    """local memory of a thread; our kernels use it only for spilled registers"""
    spill_store_bytes: Count | None = None
    spill_load_bytes: Count | None = None
    """bytes per thread that the code stores to and loads from local memory: the spill stores and
    loads of `ptxas -v`"""
    ptxas_notes: list[Any] | None = None
    """what ptxas says of code that will be slow, such as `C7515: wgmma.mma_async instructions are
    serialized due to ...`"""
    block_shared_bytes: Count | None = None
    """shared memory of a block"""
    tensor_memory_column_count: Count | None = None
    """columns of tensor memory of a block; 0 if it uses none"""
    instruction_count: Count | None = None
    """instructions of the code, without padding"""
    instructions: Counts | None = None
    """the same by class, once each if they are in a loop: `HMMA`, `HGMMA`, `UTCHMMA` (matrix
    products of one warp, of four warps, into tensor memory), `FFMA`, `MUFU.EX2`, `LDGSTS` and `TMA`
    (asynchronous copies), `barriers`, `shared`, `global`, `local`, `other`"""
    loop_spill_store_bytes: Count | None = None
    loop_spill_load_bytes: Count | None = None
    """spilled bytes of the instructions in loops over tiles; those outside run once per tile of the
    other side"""
    loop_instructions: Object | None = None
    """instructions by class of the loop that multiplies matrices: of several the innermost with the
    fewest instructions per product"""
    loop_wait_count: Count | None = None
    """how often that loop waits for its HGMMA"""
    serialized: bool | None = None
    """whether it waits after every HGMMA, so that each runs alone"""
    loop_tensor_cycles: Number | None = None
    loop_exponential_cycles: Number | None = None
    loop_issue_cycles: Number | None = None
    """cycles that an iteration of a warp takes of the tensor core, the exponentials and the
    scheduler of its quarter of an SM; of HGMMA only"""
    loop_overlaps: bool | None = None
    """whether a wait of that loop leaves products running"""
    loop_parts: Each[Cycles] | None = None
    """the same cycles in the order of the code, as objects with `tensor_cycles`,
    `exponential_cycles` and `issue_cycles`: a part for each wait that has products before it, from
    its first product to that of the next part"""
    tensor_busy_most_ratio: Number | None = None
    """the most of the time that the tensor cores can be busy, by these cycles"""
    tensor_busy_limited_by: str | None = None
    """what limits it: `tensor`, `exponentials`, `issue`, or `turns`: products and softmax of a
    block, or of a copy of the loop, take turns, and too few others share the SM to fill the gaps"""
    allocated_register_count: Count | None = None
    allocated_shared_bytes: Count | None = None
    """what an SM gives to a block: rounded up to units, with the 1 KiB of shared memory that the
    system reserves"""
    block_limits: Counts | None = None
    """how many blocks fit an SM by each resource: `registers`, `shared_memory`, `warps`, `blocks`,
    and `tensor_memory` if it is used"""
    sm_block_count: Count | None = None
    sm_warp_count: Count | None = None
    """blocks that an SM holds at once, the least of `block_limits`, and their warps; 0 if not even
    one fits"""
    occupancy_ratio: Number | None = None
    """these warps over the most that an SM holds: theoretical occupancy"""
    limited_by: Each[str] | None = None
    """the resources that run out first"""
    sm_register_count: Count | None = None
    sm_shared_bytes: Count | None = None
    sm_most_warp_count: Count | None = None
    sm_most_block_count: Count | None = None
    """what an SM of this GPU has"""
    sm_tensor_memory_column_count: Count | None = None
    """columns of tensor memory of an SM; null if this GPU has none"""
    missing: Reasons = Field({})
    """why a value is null: name and reason; a kernel that is not `ok` has its `reason` instead"""
