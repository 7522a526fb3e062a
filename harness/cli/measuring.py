"""What `attnbench run` and `wall` share: reading scenarios, measuring them, printing the result."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..files.errors import BadInput, shown
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
    own_option,
    switch,
)
from .texts import separated

if TYPE_CHECKING:
    from ..run.run_rows import RunResult
    from ..run.start import RunOptions
    from ..run.suite import SuiteEntry

GIVEN = ("backends", "head_dim", "model", "phase", "tp", "baseline")
"""Options of a grid beside those of the axes of a problem, by the names of a scenario's fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Cases given by options."""

    backends: Backends = None
    backend: Texts = own_option(
        "--backend MODULE:ATTRIBUTE",
        "Also this callable or module of yours; needs --allow-import. Repeatable.",
        WHAT,
    )
    allow_import: bool = switch(
        "--allow-import", "Let workers import and run the modules that --backend names.", WHAT
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
        return {**{name: str(one) for name, one in own.items() if one is not None}, **self.axes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Where to, in which order, and what is said meanwhile."""

    threads: Threads = None
    out: Root = DEFAULT_ROOT
    dry_run: bool = switch(
        "--dry-run -n", "Show every case with its predicted bytes; measure nothing.", OUTPUT
    )
    wait: Wait = False
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
    changes: list[str],
    more_backends: Mapping[str, str],
) -> tuple[list[Any], bool]:
    """All scenarios, and whether they are a suite."""
    from ..scenario import Entry, from_axes
    from .suite import read_entries

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
    return read_entries(scenarios, changes, more_backends)


def print_dry_run(
    planned: "Sequence[SuiteEntry]", root: Path, of_packs: Mapping[str, Any] = {}
) -> None:
    """What is known before anything runs, on stdout; `of_packs`: the values of packs' options."""
    from ..process.interpreter import check_interpreters
    from ..terminal.live_bar import busy
    from ..terminal.progress import echo

    with busy("starting"):
        from .dry_run import preflight_tables

    check_interpreters(planned[0].selection.interpreters)
    for entry in planned:
        for table in preflight_tables(entry.scenario, entry.selection, of_packs):
            echo(table)


def measure(
    job: "Callable[[RunOptions], RunResult]", options: "RunOptions", session: Session
) -> None:
    """Do a run, print its folder on stdout, and a summary on stderr; exit with its exit code."""
    from ..terminal import live_bar
    from ..terminal import progress as terminal

    with terminal.started(options.listener):
        result = job(options)
    if session.as_json:
        end = {"reason": "end", "run": str(result.path), "statuses": dict(result.statuses)}
        typer.echo(json.dumps(end))
        raise typer.Exit(result.exit_code)
    typer.echo(result.path)
    if not session.quiet:
        with live_bar.busy("reading the results"):
            from ...reports.pages.report import open_report
            from ...reports.pages.terminal import terminal_summary
            from .wall_table import found_table

            answers = terminal_summary(open_report([result.path]))
        terminal.print_summary(result.statuses, answers, found_table(result.path), result.path)
    raise typer.Exit(result.exit_code)
