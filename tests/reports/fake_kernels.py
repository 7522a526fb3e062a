"""Writes the folder of an audit of kernels with made-up numbers, in rows made by the harness."""

from pathlib import Path
from typing import Any

from attnbench.harness.audit.kernel_row import kernel_record
from attnbench.harness.rows.record import Status
from tests.made_runs import write_run

MIX = {"HMMA": 256, "HGMMA": 0, "UTCHMMA": 0, "FFMA": 64, "MUFU.EX2": 132, "LDGSTS": 24, "TMA": 0}
MIX |= {"shared": 90, "global": 8, "local": 0, "other": 900}
MATRIX = {"8.0": "HMMA", "9.0": "HGMMA", "10.0": "UTCHMMA"}


def plan(capability: str, kernel: str = "forward", rank: int = 1, **changes: Any) -> dict[str, Any]:
    config: dict[str, Any] = {"block_q": 128 // rank, "block_kv": 64, "warps": 8, "stages": 2}
    config |= {"descriptors": rank == 2, "specialize": False}
    kind: dict[str, Any] = {
        "kernel": kernel,
        "dtype": "bf16",
        "d_k": 128,
        "d_v": 128,
        "causal": True,
    }
    kind |= {"masked": False, "tf32": False, **changes}
    parts = ["kernel", f"sm{capability.replace('.', '')}", kernel, kind["dtype"]]
    parts += [f"d_k{kind['d_k']}", str(rank), *(["causal"] if kind["causal"] else [])]
    of = {"case": "-".join(parts), "compute_capability": capability}
    return {**of, **kind, "config": config, "rank": rank}


def found(capability: str, **changes: Any) -> dict[str, Any]:
    mix = MIX | {"HMMA": 0} | {MATRIX.get(capability, "HMMA"): 256}
    facts: dict[str, Any] = {"triton": "3.9.0", "ptxas": "13.4.59", "block_warp_count": 8}
    facts |= {"thread_register_count": 205, "thread_stack_bytes": 0, "block_shared_bytes": 80 << 10}
    facts |= {"spill_store_bytes": 0, "spill_load_bytes": 0, "instructions": mix, "missing": {}}
    facts["tensor_memory_column_count"] = 256 if capability == "10.0" else 0
    facts["instruction_count"] = sum(mix.values())
    return facts | changes


def row(
    planned: dict[str, Any], status: Status = Status.OK, reason: str = "", **changes: Any
) -> dict[str, Any]:
    facts = found(planned["compute_capability"], **changes) if status is Status.OK else {}
    return kernel_record(planned, status, reason, **facts, spent_s=1.5).row()


def write_audit(
    parent: Path, plans: list[dict[str, Any]], rows: list[dict[str, Any]], **meta: Any
) -> Path:
    question = "What did the compilers make of the tuned Triton kernels?"
    scenario = {"name": "kernels", "question": question}
    meta = {"kernels": plans, "scenario": scenario, "memory_bytes": None, "seed": None} | meta
    return write_run(parent, [], rows, name="kernels", **meta)


def three_gpus(parent: Path) -> Path:
    """Two configurations of three kernels for three GPUs; one spills on 8.0, none elsewhere."""
    plans = [
        plan(gpu, kernel, rank)
        for gpu in MATRIX
        for kernel in ("forward", "grad_q", "grad_kv")
        for rank in (1, 2)
    ]
    rows = [row(one) for one in plans]
    spilled = {"thread_stack_bytes": 8, "spill_store_bytes": 12, "spill_load_bytes": 8}
    rows[5] = row(plans[5], **spilled, thread_register_count=255)
    return write_audit(parent, plans, rows)
