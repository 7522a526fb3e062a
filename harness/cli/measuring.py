"""What verbs that measure share: reading scenarios, measuring one of them or several, one after the
other, and printing what came of it.
"""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..files.errors import BadInput, Refusal, shown
from ..rows.record import FAILURES
from ..terminal.idle import wait_until_idle
from .options import (
    DEFAULT_ROOT,
    OUTPUT,
    SHAPE,
    WHAT,
    AsJson,
    Axes,
    Backends,
    Quiet,
    Root,
    Seed,
    Texts,
    Threads,
    Wait,
    WaitIdle,
    own_option,
    switch,
)
from .texts import separated

if TYPE_CHECKING:
    from ...reports.pages.report import Report
    from ..rows.states import RunState
    from ..run.run_rows import RunResult
    from ..run.start import RunOptions
    from ..run.suite import SuiteEntry
    from ..scenario import Change, Entry, Scenario
    from ..scenario.selection import Selection

SIGNALLED = 128  # exit codes above tell the signal
GIVEN = ("backends", "head_dim", "model", "phase", "queries", "tp", "baseline")
"""Options of a grid beside those of the axes of a problem, by the names of a scenario's fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Cases given by options."""

    backends: Backends = None
    backend: Texts = own_option(
        "--backend MODULE:ATTRIBUTE",
        "Earlier name of a module in --backends; repeatable.",
        WHAT,
        hidden=True,
    )
    allow_import: bool = switch(
        "--allow-import", "Let workers import and run the modules that a scenario names.", WHAT
    )
    axes: Axes = field(default_factory=dict)
    head_dim: str | None = own_option(
        "--head-dim WIDTH",
        "Width of one head; d_model / heads if not given. Without --d-model: d_model is heads"
        " times this.",
        SHAPE,
    )

    @property
    def values(self) -> dict[str, Any]:
        """What was given, by the names of a scenario's fields."""
        own = {name: getattr(self, name, None) for name in GIVEN}
        if self.backends is not None:
            own["backends"], _ = self._backends
        return {**{name: str(one) for name, one in own.items() if one is not None}, **self.axes}

    @property
    def _backends(self) -> tuple[str, set[str]]:
        """Those of --backends, and which of them are functions of the user. Raises BadInput."""
        from ..scenario.selection import backends_of_option

        return backends_of_option(self.backends or "")

    def may_import(self, scenarios: "Iterable[Scenario]") -> bool:
        """Whether workers may import modules: those that the command line names, or also those of
        scenarios if that is allowed. Raises BadInput if a scenario names others.
        """
        from ..scenario.selection import backends_of, refuse_imports

        named = {*self._backends[1], *backends_of(self.backend or ())}
        for one in scenarios:
            others = [name for name in one.backends if name not in named]
            refuse_imports(others, allowed=self.allow_import)
        return self.allow_import or bool(named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Where to, in which order, and what is said meanwhile."""

    threads: Threads = None
    out: Root = DEFAULT_ROOT
    dry_run: bool = switch(
        "--dry-run -n",
        "Check scenarios and show every case with its predicted bytes; measure nothing.",
        OUTPUT,
    )
    wait: Wait = False
    wait_idle: WaitIdle = None
    seed: Seed = 0
    quiet: Quiet = False
    as_json: AsJson = False

    def options(self, *, allow_import: bool) -> "RunOptions":
        """How to run, with the progress that is asked for."""
        from ..terminal.progress import progress

        listener = progress(quiet=self.quiet, as_json=self.as_json)
        return run_options(listener, wait=self.wait, allow_import=allow_import)


def run_options(listener: Any, **settings: Any) -> "RunOptions":
    """Of the command that was given."""
    from ..run.start import RunOptions

    return RunOptions(command=["attnbench", *sys.argv[1:]], listener=listener, **settings)


def read_scenarios(
    scenarios: list[str],
    axes: Mapping[str, str | bool],
    changes: "list[Change]",
    more_backends: Mapping[str, str],
) -> "tuple[list[Entry], bool]":
    """The entries of all files and names, and whether they are several, or a list of one.

    Raises BadInput with the mistakes of all of them.
    """
    from ..scenario import Entry, from_axes, load_entries
    from ..scenario.names import expanded

    if scenarios and axes:
        if hint := separated(scenarios, sys.argv):
            raise BadInput(hint)
        option = f"--{next(iter(axes)).replace('_', '-')}"
        raise BadInput(
            f"{option}: cannot be combined with a scenario, here {shown(scenarios[0])}; change a"
            " scenario with --set grid.seq_len=[512,1k]"
        )
    if not scenarios and not axes:
        raise BadInput(
            "nothing to run; name a scenario (see attnbench list scenarios), or give axes such as"
            " --backends naive,fused --seq-len 1k --d-model 512 --heads 8"
        )
    if axes:
        return [Entry(scenario=from_axes(axes, changes, more_backends))], False
    files, problems = [], dict[str, None]()
    for name in expanded(scenarios):
        try:
            files.append(load_entries(name, changes, more_backends))
        except BadInput as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise BadInput(*problems)
    are_several = len(files) > 1 or any(file.is_list for file in files)
    return [entry for file in files for entry in file.entries], are_several


def planned_entries(
    entries: "Sequence[Entry]", selection: "Selection", of_models: "Entry | None" = None
) -> "list[SuiteEntry]":
    """With the command line's --only and --skip, which narrow each entry's own.

    `of_models`: the entry that looks at the selection's attachments, in place of the
    others; it is the first, so that a bad file is found before anything is measured.
    """
    from ..run.suite import SuiteEntry

    return [
        SuiteEntry(
            scenario=one.scenario,
            selection=replace(
                selection.narrowed(one.only, one.skip),
                attachments=selection.attachments if of_models in (None, one) else (),
            ),
        )
        for one in [*([of_models] if of_models else ()), *entries]
    ]


def print_dry_run(planned: "Sequence[SuiteEntry]") -> None:
    """What is known before anything runs, on stdout."""
    from ..terminal.live_bar import busy
    from ..terminal.progress import echo

    with busy("starting"):
        from ..verbs.dry_run import preflight_tables

    for entry in planned:
        for table in preflight_tables(entry.scenario, entry.selection):
            echo(table)


def measure(
    job: "Callable[[RunOptions], RunResult]",
    options: "RunOptions",
    session: Session,
    answers: Callable[[Path], Mapping[str, Any]] = lambda _: {},
) -> None:
    """Do a run, print its folder on stdout, and a summary on stderr; exit with its exit code.

    `answers`: what --json says of a run folder beside how its cases ended.
    """
    from ..terminal.live_bar import busy
    from ..terminal.progress import counts, kept, say, started

    wait_until_idle(session.wait_idle, quiet=session.quiet or session.as_json)
    with started(options.listener):
        result = job(options)
    if session.as_json:
        end = {"reason": "end", "run": str(result.path), "statuses": dict(result.statuses)}
        end |= answers(result.path)
        typer.echo(json.dumps(end))
        raise typer.Exit(result.exit_code)
    typer.echo(result.path)
    where = shlex.quote(str(result.path))
    if result.signal is not None and not session.quiet:
        say(f"{kept(result.statuses)} Go on: attnbench run --resume {where}", stderr=True)
    elif not session.quiet:
        say(counts(result.statuses), stderr=True)
        if result.few_threads:
            say(result.few_threads, stderr=True)
        with busy("reading the results"):
            from ...reports.pages.report import open_report

            found = open_report([result.path])
        _print_answers(found)
        if any(result.statuses[status] for status in FAILURES):
            say(f"why it failed: attnbench show {where} --sections refusals", stderr=True)
        say(f"the page: attnbench show {where} --open", stderr=True)
    raise typer.Exit(result.exit_code)


def _print_answers(found: "Report") -> None:
    from ...reports.pages.terminal import render_briefly, searched_walls
    from ..terminal.progress import echo

    for part in (*render_briefly(found), *searched_walls(found)):
        echo(part, stderr=True)


def measure_several(
    entries: "Sequence[SuiteEntry]", options: "RunOptions", session: Session
) -> None:
    """Measure each scenario into a run of its own, and print their folders. Exits with the worst
    exit code.
    """
    from ..rows.run_files import read_meta
    from ..run.suite import earlier_run
    from ..run.threads import worker_threads
    from ..terminal.progress import say

    talks = not (session.as_json or session.quiet)
    earlier = [  # of other engines the devices are not known yet: there all is measured
        None if options.engine else earlier_run(one, session.out, session.seed) for one in entries
    ]
    wait_until_idle(session.wait_idle, quiet=not talks)
    left = (read_meta(one.path) for one in earlier if one is not None and not one.is_finished)
    meta = next(left, None)  # all have as many threads as that run had
    with worker_threads("elsewhere" if options.engine else "auto", meta) as few_threads:
        if few_threads and talks:
            say(f"note: {few_threads}", stderr=True)
        ends = _ends_of([*zip(entries, earlier, strict=True)], options, session, talks=talks)
    if few_threads and talks:
        say(few_threads, stderr=True)
    code = max(end.exit_code for end in ends)
    runs = [end.path for end in ends if not isinstance(end, Refusal)]
    if session.as_json:
        statuses = sum(
            (end.statuses for end in ends if not isinstance(end, Refusal)), Counter[str]()
        )
        found = zip(entries, ends, strict=False)  # a signal ends them early
        said = [_end_of(entry, end) for entry, end in found]
        typer.echo(json.dumps({"reason": "end", "entries": said, "statuses": dict(statuses)}))
    elif talks and code > SIGNALLED:
        say("Stopped: rows are kept. Go on: the same command again.", stderr=True)
    elif talks and runs:
        _print_summary(runs)
    raise typer.Exit(code)


def _ends_of(
    entries: "Sequence[tuple[SuiteEntry, RunState | None]]",
    options: "RunOptions",
    session: Session,
    *,
    talks: bool,
) -> "list[RunResult | Refusal]":
    from rich.markup import escape

    from ..run.suite import measure_entry
    from ..terminal.progress import counts, echo, say, started

    ends: list[RunResult | Refusal] = []
    for number, (entry, earlier) in enumerate(entries, 1):
        scenario = entry.scenario
        if session.as_json:
            of = {"number": number - 1, "of": len(entries), "scenario": scenario.name}
            typer.echo(json.dumps({"reason": "entry", **of}))
        elif talks:
            place = f"{number} of {len(entries)}: {escape(scenario.name)}:"
            echo(f"\n[bold]{place}[/] {escape(scenario.question)}", stderr=True)
        with started(options.listener):
            end = measure_entry(entry, earlier, session.out, session.seed, options)
        ends.append(end)
        if isinstance(end, Refusal):
            typer.echo(f"{scenario.name}: {end}", err=True)
        else:
            options = replace(options, wait=True)  # who takes the device skips no entry
            if not session.as_json:
                typer.echo(end.path)
            if talks:
                skipped = earlier is not None and earlier.is_finished
                said = "; skipped: it has finished, and another --runs measures it again"
                say(f"{counts(end.statuses)}{said if skipped else ''}", stderr=True)
        if end.exit_code > SIGNALLED:
            break
    return ends


def _end_of(entry: "SuiteEntry", end: "RunResult | Refusal") -> dict[str, Any]:
    """For --json."""
    name = entry.scenario.name
    if isinstance(end, Refusal):
        return {"scenario": name, "ended": "refused", "run": None}
    ended = "finished" if end.signal is None else "interrupted"
    return {"scenario": name, "ended": ended, "run": str(end.path)}


def _print_summary(runs: "Sequence[Path]") -> None:
    """An answer per question."""
    from ...reports.pages.report import open_report, per_question
    from ..terminal.progress import say

    for one in per_question(open_report(runs)):
        say("", stderr=True)
        _print_answers(one)
    say(f"\nthe page: attnbench show --open {shlex.join(map(str, runs))}", stderr=True)
