"""`attnbench run` of several scenarios: one run after the other, and a summary at the end."""

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ..run.start import RunOptions
    from ..run.suite import EntryEnd, Suite, SuiteEntry
    from ..scenario import Entry, Scenario
    from ..scenario.selection import Selection
    from ..store.suites import SuiteState
    from .measuring import Session

NAME = "suite"  # of several names on the command line


def read_entries(
    names: Sequence[str], changes: Sequence[str], more_backends: Mapping[str, str]
) -> "tuple[list[Entry], bool]":
    """The entries of all files and names, and whether they are a suite.

    A mistake in the last one is found before the first one is measured. Raises BadInput.
    """
    from ..scenario import load_entries

    files = [load_entries(name, changes, more_backends) for name in names]
    is_suite = len(files) > 1 or any(file.is_list for file in files)
    return [entry for file in files for entry in file.entries], is_suite


def planned_entries(
    entries: "Sequence[Entry]", selection: "Selection", of_models: "Entry | None" = None
) -> "list[SuiteEntry]":
    """With the command line's --only and --skip, which narrow each entry's own.

    `of_models`: the entry of a suite that looks at the selection's attachments, in place of the
    others; it is the first, so that a bad file is found before anything is measured.
    """
    from ..run.suite import SuiteEntry

    shard = selection.shard
    return [
        SuiteEntry(
            scenario=one.scenario,
            selection=replace(
                selection.narrowed(one.only, one.skip),
                attachments=selection.attachments if of_models in (None, one) else (),
                shard=shard and replace(shard, turn=number),
            ),
        )
        for number, one in enumerate([*([of_models] if of_models else ()), *entries])
    ]


def suite_name(names: Sequence[str]) -> str:
    """That of the one suite file, else `suite`."""
    return (Path(names[0]).stem if len(names) == 1 else "") or NAME


def measure_suite(
    suite: "Suite", options: "RunOptions", session: "Session", *, force: bool = False
) -> None:
    """Measure what a suite lacks; print its folder. Exits with the worst exit code."""
    from ..terminal import live_bar
    from ..terminal import progress as terminal

    ends: list[EntryEnd] = []
    try:
        for number in suite.pending():
            scenario = suite.entries[number].scenario
            _say_which(number, len(suite.entries), scenario, session)
            with terminal.started(options.listener):
                end = suite.measure(number, options, force=force)
            ends.append(end)
            if end.result is not None:  # what took the device meanwhile must not skip the rest
                options = replace(options, wait=True)
            if end.refusal is not None and not session.as_json:
                typer.echo(f"{scenario.name}: {end.refusal}", err=True)
            elif end.result is not None and not session.as_json and not session.quiet:
                live_bar.console().print(terminal.counts(end.result.statuses))
            if end.signal is not None:
                break
        code = max([1 if suite.has_failures else 0, *(end.exit_code for end in ends)])
    finally:
        if remark := suite.close():
            options.listener.remark(remark)
    if suite.path.exists():
        print_end(suite.path, session)
    raise typer.Exit(code)


def _say_which(number: int, count: int, scenario: "Scenario", session: "Session") -> None:
    from rich.markup import escape

    from ..terminal.live_bar import console

    if session.as_json:
        entry = {"reason": "entry", "number": number, "of": count, "scenario": scenario.name}
        typer.echo(json.dumps(entry))
    elif not session.quiet:
        what = f"[bold]{number + 1} of {count}: {escape(scenario.name)}:[/]"
        console().print(f"\n{what} {escape(scenario.question)}")


def print_end(path: Path, session: "Session") -> None:
    """Print the suite's folder on stdout, and an answer per question on stderr."""
    from ..store.suites import suite_state

    state = suite_state(path)
    if not session.as_json:
        typer.echo(path)
        if not session.quiet:
            _print_summary(state)
        return
    statuses: Counter[str] = Counter()
    entries = []
    for one in state.entries:
        statuses.update(one.state.statuses if one.state else {})
        run = str(one.state.path) if one.state else None
        entries.append({"scenario": one.scenario, "ended": one.ended, "run": run})
    end = {"reason": "end", "suite": str(path), "entries": entries, "statuses": dict(statuses)}
    typer.echo(json.dumps(end))


def _print_summary(state: "SuiteState") -> None:
    from rich.markup import escape

    from ...reports.pages.report import open_report, per_question
    from ...reports.pages.terminal import searched_walls, terminal_summary
    from ..terminal.live_bar import console
    from ..terminal.progress import counts, echo

    out = console()
    for one in per_question(open_report(state.runs)) if state.runs else ():
        out.print(f"\n[bold]{escape(one.title)}[/]")
        for sentence in terminal_summary(one):
            out.print(escape(sentence))
        for walls in searched_walls(one):
            echo(walls, stderr=True)
    out.print("")
    for entry in state.entries:
        ended = counts(entry.state.statuses) if entry.is_finished and entry.state else entry.ended
        reason = f": {entry.refused}" if entry.ended == "refused" else ""
        out.print(escape(f"{entry.scenario}: {ended}{reason}"))
    verb = "report" if state.has_ended else "run --resume"
    out.print(f"next: attnbench {verb} {escape(shlex.quote(str(state.path)))}")
