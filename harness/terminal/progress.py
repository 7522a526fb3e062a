"""What a person sees in the terminal: progress, tables and a summary.

Progress and summary go to stderr, so that stdout carries data only. Computes nothing.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import expm1, log
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from ..cases.case import ShortNames
from ..files.errors import Spelling, spelled
from ..files.printable import file_of, spaced
from ..rows.readings import BELOW
from ..rows.record import Record, Status
from ..run.listener import Begun, Listener
from ..stats.wide_intervals import MOST_TIMES
from .live_bar import SafeConsole, console, live_bar

if TYPE_CHECKING:
    from ..stats.intervals import Interval

STYLE = {
    Status.OK: "green",
    Status.OOM: "yellow",
    Status.PREDICTED_OOM: "yellow",
    Status.UNSUPPORTED: "dim",
    Status.UNAVAILABLE: "dim",
    Status.INTERRUPTED: "yellow",
}
SINGULAR = {"cases": "case", "walls": "wall", "studies": "study"}
UNFOLDED = 10_000  # columns, in a pipe or a file, where nothing shows a width
PHASES = {
    "check": "checking",
    "warm_up": "warming up",
    "sample": "timing",
    "output": "judging",
    "window": "reading counters of",
    "profile": "profiling",
    "prediction": "predicting",
}
"""What the steps of a case are called for people; `--json` has the steps themselves."""


def lines_console() -> Console:
    """For a terminal that shows something else too: no bar, only lines."""
    return console(soft_wrap=True, force_terminal=False)


# ---- listeners (listener.py) ---------------------------------------------------------------------


class LiveProgress(Listener):
    """A line with M/N, the time that passed and is left, and the current case; a line per case.

    `taken`: steps by case or wall; `skipped`: those that it turned out not to need.
    """

    def __init__(self, out: Console) -> None:
        self.out = out
        self.bar = live_bar(out)
        self.task = self.bar.add_task("", total=None, what="")
        self.total = self.done = self.skipped = 0
        self.devices = 1
        self.names = ShortNames(())
        self.most_steps: Mapping[str, int] = {}
        self.taken: dict[str, int] = {}

    def start(self) -> None:
        self._show(None, "starting a worker")

    def begin(self, run: Begun) -> None:
        counts = [
            f"{count} {what if count > 1 else SINGULAR[what]}"
            for what, count in run.planned.items()
            if count
        ]
        self.total, self.done, self.devices = sum(run.planned.values()), run.done, run.devices
        writing = f", {run.done} of them already measured" if run.done else ""
        writing += "; writing"
        if 0 < run.done == self.total:
            writing = ", all measured: nothing is left to measure in"
        self.out.print(f"{' and '.join(counts or ['0 cases'])}{writing} {escape(str(run.path))}")
        for remark in run.remarks:
            self.remark(remark)
        self.most_steps, self.taken, self.skipped = run.steps, {}, 0
        self.names = ShortNames(run.steps)
        if self.short:
            self.out.print(escape(f"all with {' '.join(self.names.common)}"))
        self._show(sum(run.steps.values()), "measuring")

    def predicted(self, walls: Sequence[tuple[str, Mapping[str, Any]]], spent_s: float) -> None:
        if walls:
            self.out.print("by formula, before the first trial:")
        for name, fields in walls:
            text = escape(prediction_text(fields))
            self.out.print(f"  {escape(self.name_of(name))}  [bold]{text}[/]")

    def steps(self, what: str, done: int) -> None:
        self.taken[what] = done
        self._update()

    def running(self, what: str, phase: str) -> None:
        done = f"trying {phase} of" if phase.startswith("N = ") else PHASES.get(phase, phase)
        doing = f"{done} {self.name_of(what)}".strip()
        several = f"{self.devices} devices, one is " if self.devices > 1 else ""
        self._update(what=f"{several}{doing}")

    def finished(self, record: Record) -> None:
        self.done += 1
        taken = self.taken.setdefault(record.id, 1)
        self.skipped += self.most_steps.get(record.id, taken) - taken
        self._update()
        if record.status is not Status.INTERRUPTED:
            line = line_of(record, self.name_of(record.id))
            self._print_line(f"{self.done:>{len(str(self.total))}}/{self.total}", line)

    def remark(self, text: str) -> None:
        self.out.print(f"[yellow]note:[/] {escape(spelled(text, Spelling.SHELL))}")

    def end(self) -> None:
        self.bar.stop()

    @property
    def short(self) -> bool:
        """Whether names are shortened: only where a person reads them on a terminal."""
        return self.out.is_terminal and bool(self.names.common)

    def name_of(self, case: str) -> str:
        return self.names.of(case) if self.short else case

    def _show(self, total: int | None, what: str) -> None:
        self.bar.reset(self.task, total=total, what=what, left_ratio=None)
        self.bar.start()

    def _update(self, **fields: Any) -> None:
        """What is left takes as long as the steps of this run did; what was skipped took none."""
        taken, most = sum(self.taken.values()), sum(self.most_steps.values())
        done = min(taken + self.skipped, most)
        ratio = (most - done) / taken if taken else None
        self.bar.update(self.task, completed=done, left_ratio=ratio, **fields)

    def _print_line(self, place: str, line: str) -> None:
        """On a terminal what does not fit goes on below, after the place."""
        if not self.out.is_terminal:
            self.out.print(f"{place}  {line}")
            return
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(place, line)
        self.out.print(grid)


def prediction_text(fields: Mapping[str, Any]) -> str:
    """`4 093`, or why there is no number, or what stands in for a missing formula."""
    seq_len, reason = fields["predicted_seq_len"], fields["predicted_reason"]
    if seq_len is None:
        return f"no prediction: {reason}"
    return f"at least {spaced(seq_len)}: {reason}" if reason else spaced(seq_len)


class JsonProgress(Listener):
    """One JSON object per line on stdout, each with a key `reason`, for programs."""

    def __init__(self) -> None:
        self._out = sys.stdout  # sys.stdout may be another while it runs

    def begin(self, run: Begun) -> None:
        counts = {**run.planned, "done": run.done, "steps": sum(run.steps.values())}
        self._print(
            reason="begin",
            run=str(run.path),
            **counts,
            remarks=[spelled(one, Spelling.SHELL) for one in run.remarks],
        )

    def predicted(self, walls: Sequence[tuple[str, Mapping[str, Any]]], spent_s: float) -> None:
        for name, fields in walls:
            self._print(reason="predicted", case=name, **fields)

    def running(self, what: str, phase: str) -> None:
        self._print(reason="running", case=what, phase=phase)

    def steps(self, what: str, done: int) -> None:
        self._print(reason="steps", case=what, done=done)

    def finished(self, record: Record) -> None:
        row = {name: value for name, value in record.row.items() if not name.endswith("block_ms")}
        self._print(reason="finished", row=row)

    def remark(self, text: str) -> None:
        self._print(reason="remark", text=spelled(text, Spelling.SHELL))

    def _print(self, **message: Any) -> None:
        self._out.write(f"{json.dumps(message, allow_nan=False)}\n")
        self._out.flush()


def progress(*, quiet: bool, as_json: bool = False) -> Listener:
    """The listener that the options ask for."""
    if as_json:
        return JsonProgress()
    return Listener() if quiet else LiveProgress(console())


@contextmanager
def started(listener: Listener) -> Iterator[None]:
    """What is asked for is seen at once; at the end nothing is left."""
    listener.start()
    try:
        yield
    finally:
        listener.end()


def line_of(record: Record, name: str = "") -> str:
    """One line: latency with its half-width, the longest N that fits, or why there is none.

    `name`: in place of the id.
    """
    from humanize import naturalsize

    from ..rows.readings import headline
    from ..stats.intervals import latency_interval

    name = escape(name or record.id)
    if record.status is not Status.OK:
        style = STYLE.get(record.status, "red")
        return f"{name}  [{style}]{record.status}[/] {escape(record.reason)}"
    if record["kind"] == "wall":
        low, high, predicted = (
            record[name] for name in ("seq_len_low", "seq_len_high", "predicted_seq_len")
        )
        failed = "" if high is None else f", {spaced(high)} fails"
        expected = "" if predicted is None else f"; by formula {spaced(predicted)}"
        return f"{name}  [green]{spaced(low)} fits[/]{failed}{expected}"
    if record["kind"] == "study":
        count = len(record["findings"])
        return f"{name}  [green]{count} {'finding' if count == 1 else 'findings'}[/]"
    parts = [name]
    if record["block_ms"]:
        half, interval = record["half_width_ratio"], latency_interval(record["block_ms"])
        parts.append(f"[green]{interval.value:.4g} ms[/]{_width(half, interval)}")
    error = record["error_l2_ratio"]
    if record["exactness"] == "approximate" and error is not None:
        cosine = record["output_cosine"]
        angle = "" if cosine is None else f", cosine {cosine:.2f}"
        parts.append(f"[yellow]approximate, error {100 * error:.1f} %{angle}[/]")
    if record["peak_bytes"] is not None:
        parts.append(f"peak {naturalsize(record['peak_bytes'], binary=True)}")
    elif BELOW in (reason := (record["memory_missing"] or {}).get("peak_bytes", "")):
        parts.append(f"peak {reason}")
    if record["workspace_bytes"]:
        held = naturalsize(record["workspace_bytes"], binary=True)
        parts.append(f"holds {held} between calls")
    if record["windows"] and record["utilization_tier"]:
        parts.append(headline(record["windows"], record["utilization_tier"]))
    if record["stop"] == "budget":
        parts.append("[dim]time used up[/]")
    return "  ".join(parts)


def _width(half_ratio: float | None, interval: "Interval") -> str:
    """`half_ratio` is on the log scale. Beyond 100 % a ± would seem to reach below zero."""
    if half_ratio is None:
        return " (one block: no interval)"
    if half_ratio >= log(MOST_TIMES):
        return f" (uncertain by more than {MOST_TIMES:.0f} times)"
    above = expm1(half_ratio)
    if above > 1:
        return f" ({interval.low:.3g} to {interval.high:.3g})"
    return f" ± {100 * above:.1f} %"


# ---- tables and summaries ------------------------------------------------------------------------


def counts(statuses: Counter[str]) -> str:
    """'21 ok, 2 oom'."""
    return ", ".join(f"{statuses[status]} {status}" for status in Status if statuses[status])


def kept(statuses: Counter[str]) -> str:
    """Of a run that was stopped: 'Stopped: 21 of 42 cases are kept.'"""
    total = statuses.total()
    done = total - statuses[Status.INTERRUPTED]
    return f"Stopped: {done or 'none'} of {total} cases {'is' if done < 2 else 'are'} kept."


def echo(part: RenderableType, *, stderr: bool = False) -> None:
    """Print, broken at words in a terminal; in a pipe or a file nothing is folded."""
    file = file_of(sys.stderr if stderr else sys.stdout)
    wide = None if file.isatty() else UNFOLDED
    SafeConsole(file=file, highlight=False, width=wide).print(part)


def say(sentence: str, *, stderr: bool = False) -> None:
    """A sentence that is no markup."""
    echo(escape(spelled(sentence, Spelling.SHELL)), stderr=stderr)
