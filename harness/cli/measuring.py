"""What `attnbench run` and `wall` share: reading scenarios, measuring them, printing the result."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from ..files.errors import BadInput, shown
from .options import (
    DEFAULT_ROOT,
    AllowImport,
    AsJson,
    Axes,
    Backends,
    DryRun,
    HeadDim,
    Imported,
    Quiet,
    Root,
    Seed,
    Threads,
    Wait,
)
from .texts import given, separated


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Cases given by options."""

    backends: Backends = None
    backend: Imported = None
    allow_import: AllowImport = False
    axes: Axes = field(default_factory=dict)
    head_dim: HeadDim = None

    @property
    def values(self) -> dict[str, Any]:
        """What was given, by the names of a scenario's fields."""
        backends, head_dim = given({"backends": self.backends}), given({"head_dim": self.head_dim})
        return {**backends, **self.axes, **head_dim}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Where to, in which order, and what is said meanwhile."""

    threads: Threads = None
    out: Root = DEFAULT_ROOT
    dry_run: DryRun = False
    wait: Wait = False
    seed: Seed = 0
    quiet: Quiet = False
    as_json: AsJson = False

    def listening(self, *, allow_import: bool) -> tuple[Any, Any]:
        """The progress that is asked for, and how to run with it."""
        from ..run.start import RunOptions
        from ..terminal.progress import progress

        listener = progress(quiet=self.quiet, as_json=self.as_json)
        return listener, RunOptions(
            command=["attnbench", *sys.argv[1:]],
            listener=listener,
            wait=self.wait,
            allow_import=allow_import,
        )


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


def print_dry_run(planned: Sequence[Any], root: Path, of_packs: Mapping[str, Any] = {}) -> None:
    """What is known before anything runs, on stdout; `of_packs`: the values of packs' options."""
    from ..process.interpreter import check_interpreters
    from ..terminal.live_bar import busy
    from ..terminal.progress import echo

    with busy("starting"):
        from .dry_run import preflight_tables

    check_interpreters(planned[0].selection.interpreters)
    for entry in planned:
        for table in preflight_tables(entry.scenario, entry.selection, root, of_packs):
            echo(table)


def measure_all(
    jobs: Sequence[Callable[[Any], Any]], progress: Any, options: Any, session: Session
) -> None:
    """Do one run after the other; exit with the worst exit code."""
    worst = 0
    for job in jobs:
        progress.start("starting a worker")
        try:
            result = job(options)
        finally:
            progress.end()
        print_result(result, quiet=session.quiet, as_json=session.as_json)
        worst = max(worst, result.exit_code)
        if result.signal is not None:
            break
    raise typer.Exit(worst)


def print_result(result: Any, *, quiet: bool, as_json: bool) -> None:
    """Print the run folder on stdout, and a summary on stderr."""
    if as_json:
        end = {"reason": "end", "run": str(result.path), "statuses": dict(result.statuses)}
        typer.echo(json.dumps(end))
        return
    typer.echo(result.path)
    if not quiet:
        from ..terminal import live_bar
        from ..terminal import progress as terminal

        with live_bar.busy("reading the results"):
            from ...reports.pages.report import open_report
            from ...reports.pages.terminal import terminal_summary
            from .wall_table import found_table

            answers = terminal_summary(open_report([result.path]))
        terminal.print_summary(result.statuses, answers, found_table(result.path), result.path)
