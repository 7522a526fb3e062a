"""What a person sees while kernels compile: a bar, and a line for each that did not come
out well.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.markup import escape

from ..record import Status
from ..terminal import STYLE, LiveProgress, console
from .record import KernelRecord
from .verdict import spills

STEPS = 10  # lines of an audit that goes well, where there is no terminal that could show a bar


class AuditProgress:
    def __init__(self) -> None:
        self.live = LiveProgress(console(), "compiling")

    def begin(
        self, path: Path, planned: Mapping[str, int], done: int, remarks: Sequence[str]
    ) -> None:
        self.live.begin(path, planned, done, remarks)

    def running(self, what: str, phase: str) -> None:
        self.live.running(what, phase)

    def finished(self, record: KernelRecord) -> None:
        line = complaint(record)
        bar_shows_it = self.live.out.is_terminal
        if (
            line is None
            and not bar_shows_it
            and (self.live.done + 1) % max(1, self.live.total // STEPS) == 0
        ):
            line = "compiled"
        self.live.step(line)

    def end(self) -> None:
        self.live.end()


def complaint(record: KernelRecord) -> str | None:
    name = escape(record.id)
    if record.status is not Status.OK:
        return (
            f"{name}  [{STYLE.get(record.status, 'red')}]{record.status}[/] {escape(record.reason)}"
        )
    row = record.row()
    if not spills(row):
        return None
    return (
        f"{name}  [red]spills[/]: {row['spill_store_bytes']} bytes stored,"
        f" {row['spill_load_bytes']} loaded, {row['thread_stack_bytes']} of stack per thread"
    )
