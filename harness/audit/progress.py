"""Progress while kernels compile: a bar, and a line for each that failed or spills."""

from rich.markup import escape

from ..record import Record, Status
from ..terminal import STYLE, LiveProgress, console
from .verdict import spills

STEPS = 10  # lines of an audit without failures, if no terminal shows a bar


class AuditProgress(LiveProgress):
    def __init__(self) -> None:
        super().__init__(console(), "compiling")

    def line(self, record: Record) -> str | None:
        due = self.done % max(1, self.total // STEPS) == 0
        return complaint(record) or ("compiled" if due and not self.out.is_terminal else None)


def complaint(record: Record) -> str | None:
    name = escape(record.id)
    if record.status is not Status.OK:
        style = STYLE.get(record.status, "red")
        return f"{name}  [{style}]{record.status}[/] {escape(record.reason)}"
    row = record.row()
    if not spills(row):
        return None
    return (
        f"{name}  [red]spills[/]: {row['spill_store_bytes']} bytes stored,"
        f" {row['spill_load_bytes']} loaded, {row['thread_stack_bytes']} of stack per thread"
    )
