"""What a person sees in the terminal: progress, tables and a summary.

Progress and summary go to stderr, so that stdout carries data only. Computes nothing.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TextIO

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

from .record import Record, Status

STYLE = {
    Status.OK: "green",
    Status.OOM: "yellow",
    Status.PREDICTED_OOM: "yellow",
    Status.UNSUPPORTED: "dim",
    Status.UNAVAILABLE: "dim",
    Status.INTERRUPTED: "yellow",
}
UNFOLDED = 10_000  # columns, in a pipe or a file, where nothing shows a width


def console() -> Console:
    """stderr; rich itself leaves out colour without a terminal or with NO_COLOR."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def lines_console() -> Console:
    """For a terminal that shows something else too: no bar, only lines."""
    return Console(stderr=True, highlight=False, soft_wrap=True, force_terminal=False)


# ---- listeners (listener.py) ---------------------------------------------------------------------


class LiveProgress:
    """A bar with M/N, the time left and the current case; one line per finished case."""

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

    def predicted(self, walls: Sequence[tuple[str, Mapping[str, Any]]], spent_s: float) -> None:
        if walls:
            self.bar.console.print(f"predicted in {1000 * spent_s:.0f} ms, before the first trial:")
        for name, fields in walls:
            line = f"  {escape(name)}  [bold]{escape(prediction_text(fields))}[/]"
            self.bar.console.print(line)

    def running(self, what: str, phase: str) -> None:
        self.bar.update(self.task, what=f"{escape(what)} {phase}")

    def finished(self, record: Record) -> None:
        self.done += 1
        self.bar.advance(self.task)
        line = self.line(record)
        if line is not None:
            self.bar.console.print(f"{self.done:>{len(str(self.total))}}/{self.total}  {line}")

    def line(self, record: Record) -> str | None:
        """What to say of a finished record; None: nothing."""
        return line_of(record)

    def remark(self, text: str) -> None:
        self.bar.console.print(f"[yellow]note:[/] {escape(text)}")

    def end(self) -> None:
        self.bar.stop()


def prediction_text(fields: Mapping[str, Any]) -> str:
    """`N = 4,093`, or why there is no number, or what stands in for a missing formula."""
    seq_len, reason = fields["predicted_seq_len"], fields["predicted_reason"]
    if seq_len is None:
        return f"no prediction: {reason}"
    return f"N >= {seq_len:,}: {reason}" if reason else f"N = {seq_len:,}"


class QuietProgress:
    """Prints nothing."""

    def begin(
        self, path: Path, planned: Mapping[str, int], done: int, remarks: Sequence[str]
    ) -> None: ...

    def predicted(self, walls: Sequence[tuple[str, Mapping[str, Any]]], spent_s: float) -> None: ...

    def running(self, what: str, phase: str) -> None: ...

    def finished(self, record: Record) -> None: ...

    def remark(self, text: str) -> None: ...

    def end(self) -> None: ...


class JsonProgress(QuietProgress):
    """One JSON object per line on stdout, each with a key `reason`, for programs."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out or sys.stdout

    def begin(
        self, path: Path, planned: Mapping[str, int], done: int, remarks: Sequence[str]
    ) -> None:
        counts = {**planned, "done": done}
        self._print(reason="begin", run=str(path), **counts, remarks=list(remarks))

    def predicted(self, walls: Sequence[tuple[str, Mapping[str, Any]]], spent_s: float) -> None:
        for name, fields in walls:
            self._print(reason="predicted", case=name, **fields)

    def running(self, what: str, phase: str) -> None:
        self._print(reason="running", case=what, phase=phase)

    def finished(self, record: Record) -> None:
        row = {name: value for name, value in record.row().items() if not name.endswith("block_ms")}
        self._print(reason="finished", row=row)

    def remark(self, text: str) -> None:
        self._print(reason="remark", text=text)

    def _print(self, **message: Any) -> None:
        print(json.dumps(message, allow_nan=False), file=self.out, flush=True)


def progress(*, quiet: bool, as_json: bool = False) -> LiveProgress | QuietProgress:
    """The listener that the options ask for."""
    if as_json:
        return JsonProgress()
    return QuietProgress() if quiet else LiveProgress(console())


def line_of(record: Record) -> str:
    """One line: latency with its half-width, the longest N that fits, or why there is none."""
    from humanize import naturalsize

    from .measure.utilization_tier import headline
    from .stats import latency_interval

    name = escape(record.id)
    if record.status is not Status.OK:
        style = STYLE.get(record.status, "red")
        return f"{name}  [{style}]{record.status}[/] {escape(record.reason)}"
    if record.kind == "wall":
        low, high, predicted = (
            record[name] for name in ("seq_len_low", "seq_len_high", "predicted_seq_len")
        )
        failed = "" if high is None else f", fails from {high}"
        expected = "" if predicted is None else f", predicted {predicted}"
        limit = f"limited by {record['limited_by']}"
        return f"{name}  [green]fits up to N = {low}[/]{failed}{expected}; {limit}"
    if record.kind == "study":
        return f"{name}  [green]{len(record['findings'])} findings[/]"
    parts = [name]
    if record["block_ms"]:
        half, interval = record["half_width_ratio"], latency_interval(record["block_ms"])
        width = " (one block: no interval)" if half is None else f" ±{half:.1%}"
        parts.append(f"[green]{interval.value:.4g} ms[/]{width}")
    error = record["error_l2_ratio"]
    if record["exactness"] == "approximate" and error is not None:
        parts.append(f"[yellow]approximate, error {error:.1%}[/]")
    if record["peak_bytes"] is not None:
        parts.append(f"peak {naturalsize(record['peak_bytes'], binary=True)}")
    if record["workspace_bytes"]:
        parts.append(f"keeps {naturalsize(record['workspace_bytes'], binary=True)}")
    if record["windows"] and record["utilization_tier"]:
        parts.append(headline(record["windows"], record["utilization_tier"]))
    if record["stop"] == "budget":
        parts.append("[dim]budget spent[/]")
    return "  ".join(parts)


# ---- tables and summaries ------------------------------------------------------------------------


def counts(statuses: Counter[str]) -> str:
    """'21 ok, 2 oom'."""
    return ", ".join(f"{statuses[status]} {status}" for status in Status if statuses[status])


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()
) -> Table:
    """A plain table whose cells are text, never markup. `right`: right-aligned columns."""
    grid = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    grid.header_style = "bold"
    for number, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if column in right else "left"
        grid.add_column(column, justify=justify, overflow="fold", no_wrap=number == 0)
    for row in rows:
        grid.add_row(*(escape(cell) for cell in row))
    return grid


def echo(part: RenderableType, *, stderr: bool = False) -> None:
    """Print; in a pipe or a file nothing is folded."""
    wide = None if (sys.stderr if stderr else sys.stdout).isatty() else UNFOLDED
    Console(stderr=stderr, highlight=False, width=wide).print(part)


def print_summary(
    statuses: Counter[str], sentences: Iterable[str], walls: Table | None, path: Path
) -> None:
    """The end of a run: what it found, what that means, what to do next."""
    out = console()
    out.print(escape(counts(statuses)))
    for sentence in sentences:
        out.print(f"[bold]{escape(sentence)}[/]")
    if walls is not None:
        echo(walls, stderr=True)
    verb = "run --resume" if statuses[Status.INTERRUPTED] else "report"
    out.print(f"next: attnbench {verb} {escape(str(path))}")
