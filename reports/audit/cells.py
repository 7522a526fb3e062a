"""An audited kernel as table cells, in a terminal and on a page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...harness.audit.tensor_bound import LIMITS
from ...harness.audit.verdict import is_serialized, spills
from ...harness.files.printable import spaced
from ..data.row_groups import Row
from ..elements import Marked, Table
from ..formatting import STATUS_WORDS, bytes_text, list_text, percent_text
from ..quantity import Cell, Number, Quantity

MATRIX = ("UTCHMMA", "HGMMA", "HMMA", "FFMA")
LEGEND = (
    "w: warps, s: stages; shared: memory of a block; spilled: bytes that a thread stores+loads;"
    " on an SM (per SM): blocks x warps of the warps that it could hold; busy: the tensor cores,"
    " at most."
)
SHORT = {
    "registers": "regs",
    "spilled": "spill",
    "on an SM": "per SM",
    "occupancy": "occ.",
    "matrix products": "matrix",
}
TIMES = "\N{MULTIPLICATION SIGN}"


def configuration(config: Mapping[str, Any]) -> str:
    """`128x64 w8 s3`: queries by keys, warps, stages; then the configuration's other fields."""
    known = ("block_q", "block_kv", "warps", "stages")
    if not all(type(config.get(name)) is int for name in known):
        return " ".join(f"{name}={value}" for name, value in config.items())
    rest = (
        name if value is True else f"{name}={value}"
        for name, value in config.items()
        if name not in known and value not in (False, None)
    )
    q, kv, warps, stages = (config[name] for name in known)
    return " ".join([f"{q}x{kv}", f"w{warps}", f"s{stages}", *rest])


def head_text(row: Row) -> str:
    return str(row["d_k"]) if row["d_k"] == row["d_v"] else f"{row['d_k']}/{row['d_v']}"


def limit_text(row: Row) -> str:
    return list_text([name.replace("_", " ") for name in row.get("limited_by") or []])


def busy_text(row: Row) -> str:
    """`66 %, turns`: the most that the tensor cores can be busy, and what limits it."""
    if is_serialized(row):
        return "one by one"
    ratio, limit = row.get("tensor_busy_most_ratio"), row.get("tensor_busy_limited_by")
    return "" if ratio is None else f"{percent_text(ratio)}, {LIMITS.get(str(limit), limit)}"


def _spilled(row: Row) -> str:
    """Stores and loads, or the stack if they are unknown."""
    if not spills(row):
        return "" if spills(row) is None else "0"
    if row.get("spill_store_bytes") is None:
        return f"stack {row['thread_stack_bytes']}"
    return f"{row['spill_store_bytes']}+{row['spill_load_bytes']}"


def _held(row: Row) -> str:
    blocks, warps, most = map(row.get, ("sm_block_count", "block_warp_count", "sm_most_warp_count"))
    return f"{blocks}x{warps} of {most}" if blocks is not None and warps and most else ""


def _limited(row: Row) -> str:
    names = (name.removesuffix("_memory") for name in row.get("limited_by") or [])
    limits = "+".join(SHORT.get(name, name) for name in names)
    return limits if row.get("sm_block_count") or not limits else f"too big: {limits}"


def _in_code(row: Row, *names: str) -> list[str]:
    """`24 LDGSTS`: how often these instructions stand in the code."""
    mix = row.get("instructions") or {}
    return [f"{mix[name]} {name}" for name in names if mix.get(name)]


def _count(value: int | None) -> Cell:
    return "" if value is None else Number(spaced(value))


NAMES: dict[str, Callable[[Row], Cell]] = {
    "kernel": lambda row: str(row["kernel"]),
    "head": head_text,
    "configuration": lambda row: configuration(row["config"]),
    "dtype": lambda row: str(row["dtype"]),
    "causal": lambda row: "yes" if row["causal"] else "no",
    "place in its list": lambda row: str(row["rank"]),
}
FACTS: dict[str, Callable[[Row], Cell]] = {
    "registers": lambda row: _count(row.get("thread_register_count")),
    "shared": lambda row: Quantity(row.get("block_shared_bytes"), "bytes"),
    "spilled": _spilled,
    "on an SM": _held,
    "occupancy": lambda row: Quantity(row.get("occupancy_ratio"), "share"),
    "limited by": _limited,
    "matrix products": lambda row: next(iter(_in_code(row, *MATRIX)), ""),
    "copies": lambda row: ", ".join(_in_code(row, "TMA", "LDGSTS")),
    "exponentials": lambda row: _count((row.get("instructions") or {}).get("MUFU.EX2")),
    "instructions": lambda row: _count(row.get("instruction_count")),
    "busy": busy_text,
}
ONLY_ON_PAGES = frozenset(
    {"dtype", "causal", "place in its list", "copies", "exponentials", "instructions"}
)


def table(title: str, rows: Sequence[Row], *, narrow: bool = False, folded: bool = False) -> Table:
    """A line per kernel. `narrow`: in a terminal, without what few ask for."""
    without = ONLY_ON_PAGES if narrow else frozenset()
    names = {name: cell for name, cell in NAMES.items() if name not in without}
    facts = {name: cell for name, cell in FACTS.items() if name not in without}

    def cells(row: Row) -> Iterator[Cell | Marked]:
        first, *others = (cell(row) for cell in names.values())
        yield Marked(cell=first, failed=row["status"] != "ok")
        yield from others
        if row["status"] == "ok":
            yield from (cell(row) for cell in facts.values())
        else:
            yield from [problem(row), *[""] * (len(facts) - 1)]

    return Table(
        title=title,
        columns=tuple(SHORT.get(name, name) if narrow else name for name in (*names, *facts)),
        rows=tuple(tuple(cells(row)) for row in rows),
        folded=folded,
    )


def problem(row: Row) -> str:
    """Why a kernel fails the audit; "" if it passes."""
    if row["status"] != "ok":
        return f"{STATUS_WORDS[row['status']]}: {row['reason']}"
    found = [f"spills: {_spilled(row)}"] if spills(row) else []
    found += [f"matrix products one at a time{_note(row)}"] if is_serialized(row) else []
    return "; ".join(found) or ("could not be read" if spills(row) is None else "")


def _note(row: Row) -> str:
    """Why, in ptxas's words."""
    _, _, why = next(iter(row.get("ptxas_notes") or [""])).partition("serialized ")
    return f", {why}" if why else ""


def resources(row: Row) -> Iterator[tuple[str, int, int]]:
    """Of an SM: name, what one block takes, capacity."""
    yield "registers", row["allocated_register_count"], row["sm_register_count"]
    yield "shared_memory", row["allocated_shared_bytes"], row["sm_shared_bytes"]
    taken = row.get("tensor_memory_column_count")
    capacity = row.get("sm_tensor_memory_column_count")
    if taken and capacity:
        yield "tensor_memory", taken, capacity
    yield "warps", row["block_warp_count"], row["sm_most_warp_count"]
    yield "blocks", 1, row["sm_most_block_count"]


def amount_text(name: str, count: int) -> str:
    return bytes_text(count) if name == "shared_memory" else spaced(count)
