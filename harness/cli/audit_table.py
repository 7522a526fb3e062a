"""Kernels as tables for the terminal: one per GPU and dtype, a line per configuration, of causal
and not the worse one.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.table import Table

from ..terminal import table
from ..audit.verdict import Row, spills

COLUMNS = (
    "kernel",
    "head",
    "configuration",
    "regs",
    "smem",
    "spill",
    "per SM",
    "occ.",
    "limited by",
    "matrix",
)
RIGHT = ("head", "regs", "smem", "spill", "occ.")
MATRIX = ("UTCHMMA", "HGMMA", "HMMA")
SHORT = {"registers": "regs", "shared_memory": "shared", "tensor_memory": "tensor"}
NONE = "-"


def tables(rows: Iterable[Row]) -> Iterator[Table]:
    groups: dict[tuple[str, str], dict[tuple[Any, ...], Row]] = {}
    for row in rows:
        lines = groups.setdefault((row["compute_capability"], row["dtype"]), {})
        key = (row["kernel"], row["d_k"], row["d_v"], configuration(row["config"]))
        lines[key] = max(lines.get(key, row), row, key=badness)
    for (capability, dtype), lines in groups.items():
        one = next(iter(lines.values()))
        architecture = f" ({one['architecture']})" if one["architecture"] else ""
        versions = f"Triton {one['triton'] or 'unknown'}, ptxas {one['ptxas'] or 'unknown'}"
        title = f"{capability}{architecture}, {dtype}; {versions}"
        yield table(title, COLUMNS, map(_cells, lines.values()), right=RIGHT)


def badness(row: Row) -> tuple[Any, ...]:
    """The larger the worse: fails, spills more, leaves fewer warps on an SM, takes more
    registers.
    """
    spilled = (
        (row["spill_store_bytes"] or 0)
        + (row["spill_load_bytes"] or 0)
        + (row["thread_stack_bytes"] or 0)
    )
    return (
        row["status"] != "ok",
        spilled,
        -(row["sm_warp_count"] or 0),
        row["thread_register_count"] or 0,
    )


def configuration(config: Mapping[str, Any]) -> str:
    """128x64 w8 s3: queries by keys, warps, stages; then whatever else a configuration has."""
    known = ("block_q", "block_kv", "warps", "stages")
    rest = [
        name if value is True else f"{name}={value}"
        for name, value in config.items()
        if name not in known and value not in (False, None)
    ]
    if not all(name in config for name in known):
        return " ".join(f"{name}={value}" for name, value in config.items())
    return " ".join(
        [
            f"{config['block_q']}x{config['block_kv']}",
            f"w{config['warps']}",
            f"s{config['stages']}",
            *rest,
        ]
    )


def _cells(row: Row) -> tuple[str, ...]:
    head = str(row["d_k"]) if row["d_k"] == row["d_v"] else f"{row['d_k']}/{row['d_v']}"
    name = (row["kernel"], head, configuration(row["config"]))
    if row["status"] != "ok":
        return (*name, *[NONE] * 5, f"{row['status']}: {row['reason']}", NONE)
    return (
        *name,
        _number(row["thread_register_count"]),
        NONE if row["block_shared_bytes"] is None else f"{row['block_shared_bytes'] / 1024:.0f} K",
        _spilled(row),
        (
            NONE
            if row["sm_block_count"] is None
            else f"{row['sm_block_count']}x{row['block_warp_count']} of {row['sm_most_warp_count']}"
        ),
        NONE if row["occupancy_ratio"] is None else f"{100 * row['occupancy_ratio']:.3g}%",
        _limits(row),
        _matrix(row["instructions"]),
    )


def _number(value: int | None) -> str:
    return NONE if value is None else str(value)


def _spilled(row: Row) -> str:
    """Stores and loads, or the stack where nothing tells them."""
    if not spills(row):
        return NONE if spills(row) is None else "0"
    if row["spill_store_bytes"] is None:
        return f"stack {row['thread_stack_bytes']}"
    return f"{row['spill_store_bytes']}+{row['spill_load_bytes']}"


def _limits(row: Row) -> str:
    if row["limited_by"] is None:
        return NONE
    words = "+".join(SHORT.get(name, name) for name in row["limited_by"])
    return words if row["sm_block_count"] else f"too big: {words}"


def _matrix(instructions: Mapping[str, int] | None) -> str:
    if instructions is None:
        return NONE
    return next(
        (f"{instructions[name]} {name}" for name in MATRIX if instructions[name]),
        f"{instructions['FFMA']} FFMA",
    )
