"""`attnbench run A B C`: one scenario after the other, each a run of its own."""

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..files.errors import Refusal
from .measuring import How, print_answers

if TYPE_CHECKING:
    from ..rows.states import RunState
    from ..run.run_rows import RunResult
    from ..run.start import RunOptions
    from ..run.suite import SuiteEntry

    End = RunResult | Refusal

SIGNALLED = 128  # exit codes above tell the signal


def measure_several(entries: "Sequence[SuiteEntry]", how: How, root: Path, seed: int) -> int:
    """Print the folders. The worst exit code."""
    from ..rows.run_files import read_meta
    from ..run.suite import earlier_run
    from ..run.threads import worker_threads
    from ..terminal.progress import say

    how.wait_until_idle()
    with how.options() as options:
        away = options.engine is not None
        earlier = [  # of other engines the devices are not known yet: there all is measured
            None if away else earlier_run(one, root, seed) for one in entries
        ]
        left = (read_meta(one.path) for one in earlier if one is not None and not one.is_finished)
        meta = next(left, None)  # all have as many threads as that run had
        with worker_threads("elsewhere" if away else "auto", meta) as few:
            few_threads = how.spelled(few) if how.talks else ""
            if few_threads:
                say(f"note: {few_threads}", stderr=True)
            pairs = [*zip(entries, earlier, strict=True)]
            ends = _ends_of(pairs, options, how, root, seed)
    if few_threads:
        say(few_threads, stderr=True)
    code = max(end.exit_code for end in ends)
    results = [end for end in ends if not isinstance(end, Refusal)]
    if how.request.json:
        statuses = sum((end.statuses for end in results), Counter[str]())
        found = zip(entries, ends, strict=False)  # a signal ends them early
        told = [_end_of(entry, end) for entry, end in found]
        typer.echo(json.dumps({"reason": "end", "entries": told, "statuses": dict(statuses)}))
    elif how.talks and code > SIGNALLED:
        say("Stopped: rows are kept. Go on: the same command again.", stderr=True)
    elif how.talks and results:
        _print_summary([end.path for end in results])
    return code


def _ends_of(
    entries: "Sequence[tuple[SuiteEntry, RunState | None]]",
    options: "RunOptions",
    how: How,
    root: Path,
    seed: int,
) -> "list[End]":
    from rich.markup import escape

    from ..run.suite import measure_entry
    from ..terminal.progress import counts, echo, say, started

    ends: list[End] = []
    for number, (entry, earlier) in enumerate(entries, 1):
        scenario = entry.scenario
        if how.request.json:
            of = {"number": number - 1, "of": len(entries), "scenario": scenario.name}
            typer.echo(json.dumps({"reason": "entry", **of}))
        elif how.talks:
            place = f"{number} of {len(entries)}: {escape(scenario.name)}:"
            echo(f"\n[bold]{place}[/] {escape(scenario.question)}", stderr=True)
        with started(options.listener):
            end = measure_entry(entry, earlier, root, seed, options)
        ends.append(end)
        if isinstance(end, Refusal):
            typer.echo(f"{scenario.name}: {end}", err=True)
        else:
            options = replace(options, wait=True)  # who takes the device skips no entry
            if not how.request.json:
                typer.echo(end.path)
            if how.talks:
                skipped = earlier is not None and earlier.is_finished
                said = "; skipped: it has finished, and another --runs measures it again"
                say(f"{counts(end.statuses)}{said if skipped else ''}", stderr=True)
        if end.exit_code > SIGNALLED:
            break
    return ends


def _end_of(entry: "SuiteEntry", end: "End") -> dict[str, Any]:
    """For --json."""
    if isinstance(end, Refusal):
        return {"scenario": entry.scenario.name, "ended": "refused", "run": None}
    ended = "finished" if end.signal is None else "interrupted"
    return {"scenario": entry.scenario.name, "ended": ended, "run": str(end.path)}


def _print_summary(runs: Sequence[Path]) -> None:
    """An answer per question."""
    from ...reports.pages.report import open_report, per_question
    from ..terminal.progress import say

    for one in per_question(open_report(runs)):
        say("", stderr=True)
        print_answers(one)
    say(f"\nthe page: attnbench show --open {shlex.join(map(str, runs))}", stderr=True)
