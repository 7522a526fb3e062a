"""An audit of kernels for the terminal: progress, tables, and a sentence per compute capability."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from ..rows.record import Record, Status
from ..terminal.live_bar import console
from ..terminal.progress import STYLE, LiveProgress, table
from .kernel_faults import is_serialized, spills
from .verdict import CapabilityVerdict, Row

COLUMNS = (
    *("kernel", "head", "configuration", "regs", "smem", "spill", "per SM", "occ.", "limited by"),
    *("matrix", "busy"),
)
RIGHT = ("head", "regs", "smem", "spill", "occ.")
MATRIX = ("UTCHMMA", "HGMMA", "HMMA")
SHORT = {"registers": "regs", "shared_memory": "shared", "tensor_memory": "tensor"}
SPILLED = ("spill_store_bytes", "spill_load_bytes", "thread_stack_bytes")
NONE = "-"
STEPS = 10  # lines of an audit without failures, if no terminal shows a bar
MOST_NAMED = 3


# ---- progress ------------------------------------------------------------------------------------


class AuditProgress(LiveProgress):
    """A bar, and a line for each kernel that fails or spills."""

    def __init__(self) -> None:
        super().__init__(console(), "compiling")

    def name_of(self, case: str) -> str:
        return case.removeprefix("kernel-")

    def line(self, record: Record) -> str | None:
        due = self.done % max(1, self.total // STEPS) == 0
        return complaint(record) or ("compiled" if due and not self.out.is_terminal else None)


def complaint(record: Record) -> str | None:
    name = escape(record.id)
    if record.status is not Status.OK:
        style = STYLE.get(record.status, "red")
        return f"{name}  [{style}]{record.status}[/] {escape(record.reason)}"
    row = record.row()
    found = []
    if spills(row):
        found.append(
            f"[red]spills[/]: {row['spill_store_bytes']} bytes stored, {row['spill_load_bytes']}"
            f" loaded, {row['thread_stack_bytes']} of stack per thread"
        )
    if is_serialized(row):
        note = next(iter(row["ptxas_notes"] or ["it waits after each"]))
        found.append(f"[red]serialized[/]: matrix products run one at a time: {escape(note)}")
    return f"{name}  {'; '.join(found)}" if found else None


# ---- tables --------------------------------------------------------------------------------------


def tables(rows: Iterable[Row]) -> Iterator[Table]:
    """A table per GPU and dtype, a line per configuration: the worse of causal and full."""
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
    """Larger is worse: fails, is serialized, spills more, leaves an SM fewer warps."""
    spilled = sum(row[name] or 0 for name in SPILLED)
    warps, registers = row["sm_warp_count"] or 0, row["thread_register_count"] or 0
    return row["status"] != "ok", is_serialized(row), spilled, -warps, registers


def configuration(config: Mapping[str, Any]) -> str:
    """128x64 w8 s3: queries by keys, warps, stages; then the configuration's other fields."""
    known = ("block_q", "block_kv", "warps", "stages")
    if not all(name in config for name in known):
        return " ".join(f"{name}={value}" for name, value in config.items())
    rest = [
        name if value is True else f"{name}={value}"
        for name, value in config.items()
        if name not in known and value not in (False, None)
    ]
    tile = f"{config['block_q']}x{config['block_kv']}"
    return " ".join([tile, f"w{config['warps']}", f"s{config['stages']}", *rest])


def _cells(row: Row) -> tuple[str, ...]:
    head = str(row["d_k"]) if row["d_k"] == row["d_v"] else f"{row['d_k']}/{row['d_v']}"
    name = (row["kernel"], head, configuration(row["config"]))
    if row["status"] != "ok":
        return (*name, *[NONE] * 5, f"{row['status']}: {row['reason']}", NONE, NONE)
    names = ("thread_register_count", "block_shared_bytes", "sm_block_count", "occupancy_ratio")
    registers, shared, blocks, ratio = (row[name] for name in names)
    warps = f"{row['block_warp_count']} of {row['sm_most_warp_count']}"
    return (
        *name,
        NONE if registers is None else str(registers),
        NONE if shared is None else f"{shared / 1024:.0f} K",
        _spilled(row),
        NONE if blocks is None else f"{blocks}x{warps}",
        NONE if ratio is None else f"{100 * ratio:.3g} %",
        _limits(row),
        _matrix(row["instructions"]),
        "one by one" if is_serialized(row) else _busy(row),
    )


def _spilled(row: Row) -> str:
    """Stores and loads, or the stack if they are unknown."""
    if not spills(row):
        return NONE if spills(row) is None else "0"
    if row["spill_store_bytes"] is None:
        return f"stack {row['thread_stack_bytes']}"
    return f"{row['spill_store_bytes']}+{row['spill_load_bytes']}"


def _limits(row: Row) -> str:
    if row["limited_by"] is None:
        return NONE
    limits = "+".join(SHORT.get(name, name) for name in row["limited_by"])
    return limits if row["sm_block_count"] else f"too big: {limits}"


def _matrix(instructions: Mapping[str, int] | None) -> str:
    if instructions is None:
        return NONE
    return next(
        (f"{instructions[name]} {name}" for name in MATRIX if instructions[name]),
        f"{instructions['FFMA']} FFMA",
    )


def _busy(row: Row) -> str:
    """The most that the tensor cores can be busy."""
    ratio = row["tensor_busy_most_ratio"]
    return NONE if ratio is None else f"<= {100 * ratio:.0f} % {row['tensor_busy_limited_by']}"


# ---- sentences -----------------------------------------------------------------------------------


def sentence(verdict: CapabilityVerdict) -> str:
    """One line on one compute capability."""
    architecture = f" ({verdict.architecture})" if verdict.architecture else ""
    name = f"{verdict.compute_capability}{architecture}"
    total = "1 kernel" if len(verdict.rows) == 1 else f"{len(verdict.rows)} kernels"
    faults = {
        "did not compile": verdict.failed,
        "were not reached": verdict.interrupted,
        "spill": verdict.spilling,
        "run their matrix products one at a time": verdict.serialized,
        "have no configuration that fits an SM": verdict.without_fit,
        "could not be read": verdict.unread,
    }
    found = [
        f"{len(rows)} of {total} {what} ({_named(rows)})" for what, rows in faults.items() if rows
    ]
    if found:
        return f"{name}: FAILED, {'; '.join(found)}"
    warps = [row["sm_warp_count"] for row in verdict.rows if row["sm_warp_count"]]
    fit = ""
    if warps:
        least = f"{min(warps)} to " if min(warps) < max(warps) else ""
        fit = f"; {least}{max(warps)} of {verdict.rows[0]['sm_most_warp_count']} warps per SM"
    too_big = sum(row["sm_block_count"] == 0 for row in verdict.rows)
    skipped = f"; {too_big} too big for an SM, skipped when tuning" if too_big else ""
    return f"{name}: ok, {total}, none spills in a loop{fit}{skipped}"


def _named(rows: Sequence[Row]) -> str:
    named = ", ".join(row["case"] for row in rows[:MOST_NAMED])
    return named + (f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else "")
