"""The fields of a row of kind kernel, as read.py checks them: what is required, what may be null,
and what stands inside objects.
"""

from typing import Any

Types = dict[str, tuple[type, ...]]

KERNEL_PLAN: Types = {
    **dict.fromkeys(("compute_capability", "kernel", "dtype"), (str,)),
    **dict.fromkeys(("d_k", "d_v", "rank"), (int,)),
    "causal": (bool,),
    "config": (dict,),
}
KERNEL_REQUIRED: Types = {
    **dict.fromkeys(("kind", "case", "device", "status", "reason"), (str,)),
    "attempt": (int,),
    **KERNEL_PLAN,
}
KERNEL_NULLABLE: Types = {
    **dict.fromkeys(("architecture", "triton", "ptxas", "log_tail", "started_utc"), (str,)),
    **dict.fromkeys(("masked", "tf32"), (bool,)),
    **dict.fromkeys(
        (
            *(
                "block_warp_count",
                "block_shared_bytes",
                "thread_register_count",
                "thread_stack_bytes",
            ),
            *(
                "spill_store_bytes",
                "spill_load_bytes",
                "tensor_memory_column_count",
                "instruction_count",
            ),
            *(
                "allocated_register_count",
                "allocated_shared_bytes",
                "sm_block_count",
                "sm_warp_count",
                "sm_register_count",
            ),
            *(
                "sm_shared_bytes",
                "sm_most_warp_count",
                "sm_most_block_count",
                "sm_tensor_memory_column_count",
            ),
        ),
        (int,),
    ),
    **dict.fromkeys(("occupancy_ratio", "spent_s"), (int, float)),
    **dict.fromkeys(("instructions", "block_limits", "missing"), (dict,)),
    "limited_by": (list,),
}
KERNEL = {"kernel": (KERNEL_REQUIRED, KERNEL_NULLABLE)}


def kernel_complaint(row: dict[str, Any]) -> str | None:
    """What is wrong inside its objects and lists, as `field: what was wanted`."""
    for field in ("instructions", "block_limits"):
        if not all(type(value) is int and value >= 0 for value in (row.get(field) or {}).values()):
            return f"{field}: wanted numbers from 0 on"
    if not all(isinstance(name, str) for name in row.get("limited_by") or []):
        return "limited_by: wanted names"
    if not all(isinstance(value, int | str | None) for value in row["config"].values()):
        return "config: wanted numbers, yes or no, and names"
    counts = [row.get(field) for field, types in KERNEL_NULLABLE.items() if types == (int,)]
    if not all(count is None or count >= 0 for count in counts):
        return "a count below 0"
    return None
