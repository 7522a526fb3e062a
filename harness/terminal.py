"""What a person sees in the terminal: progress and closing words on stderr, so that stdout carries
data only. Computes nothing.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from .record import Record, Status, StudyRecord, WallRecord

STYLE = {
    Status.OK: "green",
    Status.OOM: "yellow",
    Status.PREDICTED_OOM: "yellow",
    Status.UNSUPPORTED: "dim",
    Status.UNAVAILABLE: "dim",
    Status.INTERRUPTED: "yellow",
}


def console() -> Console:
    """stderr; rich itself leaves out colour where there is no terminal or NO_COLOR is set."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def lines_console() -> Console:
    """For a terminal that shows something else too: no bar, only lines."""
    return Console(stderr=True, highlight=False, soft_wrap=True, force_terminal=False)


class LiveProgress:
    """A bar with M/N, the time left and the case under way; one line per finished case."""

    def __init__(self, out: Console, verb: str = "measuring") -> None:
        self.out = out
        self.verb = verb
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[what]}", style="dim"),
            console=out,
            transient=True,
            disable=not out.is_terminal,
        )
        self.started = time.monotonic()

    def begin(
        self, path: Path, planned: Mapping[str, int], done: int, remarks: Sequence[str]
    ) -> None:
        already = f", {done} of them already measured" if done else ""
        parts = [f"{count} {what}" for what, count in planned.items() if count] or ["0 cases"]
        self.out.print(f"{' and '.join(parts)}{already}; writing {escape(str(path))}")
        for remark in remarks:
            self.out.print(f"[yellow]note:[/] {escape(remark)}")
        total = sum(planned.values())
        self.task = self.bar.add_task(self.verb, total=total, completed=done, what="")
        self.total, self.done = total, done
        self.bar.start()

    def running(self, what: str, phase: str) -> None:
        self.bar.update(self.task, what=f"{escape(what)} {phase}")

    def finished(self, record: Record | WallRecord | StudyRecord) -> None:
        self.step(line_of(record))

    def step(self, line: str | None) -> None:
        """One more is done; where there is something to say of it, with its number."""
        self.done += 1
        self.bar.advance(self.task)
        if line is not None:
            self.bar.console.print(f"{self.done:>{len(str(self.total))}}/{self.total}  {line}")

    def remark(self, text: str) -> None:
        self.bar.console.print(f"[yellow]note:[/] {escape(text)}")

    def end(self) -> None:
        self.bar.stop()


class HasRow(Protocol):
    """A record of any kind."""

    def row(self) -> dict[str, Any]: ...


class QuietProgress:
    """Nothing."""

    def begin(
        self, path: Path, planned: Mapping[str, int], done: int, remarks: Sequence[str]
    ) -> None: ...

    def running(self, what: str, phase: str) -> None: ...

    def finished(self, record: HasRow) -> None: ...

    def remark(self, text: str) -> None: ...

    def end(self) -> None: ...


class JsonProgress(QuietProgress):
    """One JSON object per line on stdout, each with a key `reason`, for programs that watch
    a run.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out or sys.stdout

    def begin(
        self, path: Path, planned: Mapping[str, int], done: int, remarks: Sequence[str]
    ) -> None:
        self._say(
            {"reason": "begin", "run": str(path), **planned, "done": done, "remarks": list(remarks)}
        )

    def running(self, what: str, phase: str) -> None:
        self._say({"reason": "running", "case": what, "phase": phase})

    def finished(self, record: HasRow) -> None:
        row = {name: value for name, value in record.row().items() if not name.endswith("block_ms")}
        self._say({"reason": "finished", "row": row})

    def remark(self, text: str) -> None:
        self._say({"reason": "remark", "text": text})

    def _say(self, message: dict[str, Any]) -> None:
        print(json.dumps(message, allow_nan=False), file=self.out, flush=True)


def line_of(record: Record | WallRecord | StudyRecord) -> str:
    """What is finished in one line: latency with its half-width, the longest N that fits, or why
    there is none.
    """
    from humanize import naturalsize

    from .measure.utilization_tier import headline
    from .stats import latency_interval

    name = escape(record.id)
    if record.status is not Status.OK:
        style = STYLE.get(record.status, "red")
        return f"{name}  [{style}]{record.status}[/] {escape(record.reason)}"
    if isinstance(record, WallRecord):
        failed = "" if record.seq_len_high is None else f", fails from {record.seq_len_high}"
        predicted = (
            "" if record.predicted_seq_len is None else f", predicted {record.predicted_seq_len}"
        )
        return (
            f"{name}  [green]fits up to N = {record.seq_len_low}[/]{failed}{predicted}; limited by"
            f" {record.limited_by}"
        )
    if isinstance(record, StudyRecord):
        return f"{name}  [green]{len(record.findings)} findings[/]"
    parts = [name]
    if record.block_ms:
        interval = latency_interval(record.block_ms)
        width = (
            f" ±{record.half_width_ratio:.1%}"
            if record.half_width_ratio is not None
            else " (one block: no interval)"
        )
        parts.append(f"[green]{interval.value:.4g} ms[/]{width}")
    if record.exactness == "approximate" and record.error_l2_ratio is not None:
        parts.append(f"[yellow]approximate, error {record.error_l2_ratio:.1%}[/]")
    if record.peak_bytes is not None:
        parts.append(f"peak {naturalsize(record.peak_bytes, binary=True)}")
    if record.windows and record.utilization_tier:
        parts.append(headline(record.windows, record.utilization_tier))
    if record.stop == "budget":
        parts.append("[dim]budget spent[/]")
    return "  ".join(parts)


def counts(statuses: Counter[str]) -> str:
    """'21 ok, 2 oom'."""
    order = [status for status in Status if statuses[status]]
    return ", ".join(f"{statuses[status]} {status}" for status in order)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()
) -> Table:
    """A plain table whose cells are text, never markup."""
    grid = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold"
    )
    for number, column in enumerate(columns):
        grid.add_column(
            column,
            justify="right" if column in right else "left",
            overflow="fold",
            no_wrap=number == 0,
        )
    for row in rows:
        grid.add_row(*(escape(cell) for cell in row))
    return grid


def echo(part: RenderableType) -> None:
    """On stdout, sentences unfolded where nothing shows a width."""
    Console(highlight=False, width=None if sys.stdout.isatty() else 10_000).print(part)


def echo_table(table: Table, *, stderr: bool = False) -> None:
    """On stdout, where a table was asked for."""
    wide = (
        None if (sys.stderr if stderr else sys.stdout).isatty() else 10_000
    )  # in a pipe or a file nothing is folded
    Console(stderr=stderr, highlight=False, width=wide).print(table)


def closing(
    statuses: Counter[str], sentences: Iterable[str], walls: Table | None, path: Path
) -> None:
    """The last words of a run: what came out, what it means, what to do next."""
    out = console()
    out.print(escape(counts(statuses)))
    for sentence in sentences:
        out.print(f"[bold]{escape(sentence)}[/]")
    if walls is not None:
        echo_table(walls, stderr=True)
    verb = "run --resume" if statuses[Status.INTERRUPTED] else "report"
    out.print(f"next: attnbench {verb} {escape(str(path))}")
