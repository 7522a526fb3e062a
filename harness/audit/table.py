"""An audit of kernels in a terminal: its progress, and its tables."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.markup import escape

from ...reports.audit import cells
from ...reports.audit.kernels import gpu_text, versions
from ...reports.elements import Table
from ..rows.record import Record, Status
from ..terminal.live_bar import console
from ..terminal.progress import STYLE, LiveProgress
from .verdict import Row, is_serialized, spills

SPILLED = ("spill_store_bytes", "spill_load_bytes", "thread_stack_bytes")
STEPS = 10  # lines of an audit without failures, if no terminal shows a bar


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
    name, row = escape(record.id), record.row()
    if record.status is not Status.OK:
        style = STYLE.get(record.status, "red")
        return f"{name}  [{style}]{record.status}[/] {escape(record.reason)}"
    if spills(row) or is_serialized(row):
        return f"{name}  [red]{escape(cells.problem(row))}[/]"
    return None


def tables(rows: Iterable[Row]) -> Iterator[Table]:
    """A table per GPU and dtype, a line per configuration: the worse of causal and full."""
    groups: dict[tuple[str, str], dict[tuple[Any, ...], Row]] = {}
    for row in rows:
        lines = groups.setdefault((row["compute_capability"], row["dtype"]), {})
        key = (row["kernel"], row["d_k"], row["d_v"], cells.configuration(row["config"]))
        lines[key] = max(lines.get(key, row), row, key=badness)
    for (_, dtype), lines in groups.items():
        shown = [dict(row) for row in lines.values()]
        title = f"{gpu_text(shown[0])}, {dtype}; {versions(shown)}"
        yield cells.table(title, shown, narrow=True)


def badness(row: Row) -> tuple[Any, ...]:
    """Larger is worse: fails, is serialized, spills more, leaves an SM fewer warps."""
    spilled = sum(row[name] or 0 for name in SPILLED)
    warps, registers = row["sm_warp_count"] or 0, row["thread_register_count"] or 0
    return row["status"] != "ok", is_serialized(row), spilled, -warps, registers
