"""Kernels as cells of tables: every one in a line, those that are not well, and what a block takes
of an SM.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..analysis.audited_kernels import configuration, limit_text, spills
from ..data.row_groups import Row
from ..formatting import STATUS_WORDS, bytes_text, number_text

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
    """Of an SM: name, what one block takes, what there is."""
    yield "registers", row["allocated_register_count"], row["sm_register_count"]
    yield "shared_memory", row["allocated_shared_bytes"], row["sm_shared_bytes"]
    if row.get("tensor_memory_column_count") and row.get("sm_tensor_memory_column_count"):
        yield (
            "tensor_memory",
            row["tensor_memory_column_count"],
            row["sm_tensor_memory_column_count"],
        )
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


def note(name: str, blocks: int, taken: int, capacity: int) -> str:
    """`2 x 26,624 of 65,536`."""
    return (
        f"{blocks} \N{MULTIPLICATION SIGN} {amount_text(name, taken)} of"
        f" {amount_text(name, capacity)}"
    )


def amount_text(name: str, count: int) -> str:
    return bytes_text(count) if name == "shared_memory" else f"{count:,}"


def subject(row: Row) -> str:
    return (
        f"{row['kernel']} kernel ({row['dtype']}, heads {row['d_k']}"
        f" wide{', causal' if row['causal'] else ''})"
    )


def complaint(row: Row) -> tuple[str, ...]:
    """The cells of a kernel that is not well."""
    if row["status"] != "ok":
        why = f"{STATUS_WORDS[row['status']]}: {row['reason']}"
    else:
        why = f"spills: {spill_text(row)}" if spills(row) else "could not be read"
    return subject(row), configuration(row["config"]), _count(row.get("thread_register_count")), why


COLUMNS = (
    *(
        "kernel",
        "dtype",
        "head",
        "causal",
        "configuration",
        "place in its list",
        "registers",
        "shared",
        "spilled",
        "blocks",
        "warps",
    ),
    *("occupancy", "limited by", "matrix products", "copies", "exponentials", "instructions"),
)


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
        return (
            *name,
            f"{STATUS_WORDS[row['status']]}: {row['reason']}",
            *[""] * (len(COLUMNS) - len(name) - 1),
        )
    mix, matrix = row.get("instructions"), matrix_instruction(row)
    return (
        *name,
        _count(row.get("thread_register_count")),
        bytes_text(row.get("block_shared_bytes")),
        "" if spills(row) is None else spill_text(row) if spills(row) else "0",
        _count(row.get("sm_block_count")),
        _count(row.get("sm_warp_count")),
        (
            ""
            if row.get("occupancy_ratio") is None
            else f"{number_text(100 * row['occupancy_ratio'])} %"
        ),
        limit_text(row),
        f"{mix[matrix]} {matrix}" if mix and matrix else "",
        copies_text(mix) if mix else "",
        _count(mix.get("MUFU.EX2")) if mix else "",
        _count(row.get("instruction_count")),
    )


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
