"""Audited kernels as table cells: all kernels, bad ones, and what a block takes of an SM."""

from collections.abc import Iterator, Mapping
from typing import Any

from ...harness.audit.kernel_faults import is_serialized, spills
from ..analysis.audited_kernels import busy_text, configuration, limit_text
from ..data.row_groups import Row
from ..formatting import STATUS_WORDS, bytes_text, share_text

MATRIX = ("UTCHMMA", "HGMMA", "HMMA")


def spill_text(row: Row) -> str:
    if row.get("spill_store_bytes") is None:
        return f"{row['thread_stack_bytes']} B of stack"
    return f"{row['spill_store_bytes']} B stored, {row['spill_load_bytes']} B loaded"


def copies_text(mix: Mapping[str, int]) -> str:
    return ", ".join(f"{mix[name]} {name}" for name in ("TMA", "LDGSTS") if mix.get(name))


def matrix_instruction(row: Mapping[str, Any]) -> str | None:
    mix = row.get("instructions") or {}
    return next((name for name in MATRIX if mix.get(name)), None)


def resources(row: Row) -> Iterator[tuple[str, int, int]]:
    """Of an SM: name, what one block takes, capacity."""
    yield "registers", row["allocated_register_count"], row["sm_register_count"]
    yield "shared_memory", row["allocated_shared_bytes"], row["sm_shared_bytes"]
    taken, capacity = (
        row.get(name) for name in ("tensor_memory_column_count", "sm_tensor_memory_column_count")
    )
    if taken and capacity:
        yield "tensor_memory", taken, capacity
    yield "warps", row["block_warp_count"], row["sm_most_warp_count"]


def budget(row: Row) -> Iterator[tuple[str, ...]]:
    """The cells of a figure's table."""
    for name, taken, capacity in resources(row):
        yield (
            name.replace("_", " "),
            amount_text(name, taken),
            amount_text(name, capacity),
            str(row["block_limits"].get(name, "")),
        )


def use_text(name: str, blocks: int, taken: int, capacity: int) -> str:
    """`2 x 26,624 of 65,536`."""
    taken_text, capacity_text = amount_text(name, taken), amount_text(name, capacity)
    return f"{blocks} \N{MULTIPLICATION SIGN} {taken_text} of {capacity_text}"


def amount_text(name: str, count: int) -> str:
    return bytes_text(count) if name == "shared_memory" else f"{count:,}"


def kernel_name(row: Row) -> str:
    """`forward kernel (bf16, heads 128 wide, causal)`."""
    causal = ", causal" if row["causal"] else ""
    return f"{row['kernel']} kernel ({row['dtype']}, heads {row['d_k']} wide{causal})"


def bad_cells(row: Row) -> tuple[str, ...]:
    """The cells of a kernel that fails the audit."""
    if row["status"] != "ok":
        why = f"{STATUS_WORDS[row['status']]}: {row['reason']}"
    else:
        found = [f"spills: {spill_text(row)}"] if spills(row) else []
        found += [f"matrix products one at a time{_note(row)}"] if is_serialized(row) else []
        why = "; ".join(found) or "could not be read"
    registers = _count(row.get("thread_register_count"))
    return kernel_name(row), configuration(row["config"]), registers, why


def _note(row: Row) -> str:
    """Why, in ptxas's words."""
    _, _, why = next(iter(row.get("ptxas_notes") or [""])).partition("serialized ")
    return f", {why}" if why else ""


_NAME = ("kernel", "dtype", "head", "causal", "configuration", "place in its list")
_RESOURCES = ("registers", "shared", "spilled", "blocks", "warps", "occupancy", "limited by")
_INSTRUCTIONS = ("matrix products", "copies", "exponentials", "instructions")
_BUSY = ("tensor cores busy at most",)
COLUMNS = (*_NAME, *_RESOURCES, *_INSTRUCTIONS, *_BUSY)


def cells(row: Row) -> tuple[str, ...]:
    head = str(row["d_k"]) if row["d_k"] == row["d_v"] else f"{row['d_k']}/{row['d_v']}"
    name = (
        row["kernel"],
        row["dtype"],
        head,
        "yes" if row["causal"] else "no",
        configuration(row["config"]),
        str(row["rank"]),
    )
    if row["status"] != "ok":
        why = f"{STATUS_WORDS[row['status']]}: {row['reason']}"
        return *name, why, *[""] * (len(COLUMNS) - len(name) - 1)
    mix, matrix, occupancy = (
        row.get("instructions") or {},
        matrix_instruction(row),
        row.get("occupancy_ratio"),
    )
    return (
        *name,
        _count(row.get("thread_register_count")),
        bytes_text(row.get("block_shared_bytes")),
        "" if spills(row) is None else spill_text(row) if spills(row) else "0",
        _count(row.get("sm_block_count")),
        _count(row.get("sm_warp_count")),
        "" if occupancy is None else share_text(occupancy),
        limit_text(row),
        f"{mix[matrix]} {matrix}" if matrix else "",
        copies_text(mix),
        _count(mix.get("MUFU.EX2")),
        _count(row.get("instruction_count")),
        busy_text(row),
    )


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
