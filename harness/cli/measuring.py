"""What `attnbench run` and `wall` share: reading scenarios, measuring them, printing the result."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from ..files.errors import BadInput, shown
from .texts import separated


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


def listening(*, allow_import: bool, wait: bool, quiet: bool, as_json: bool) -> tuple[Any, Any]:
    """The progress that the options ask for, and how to run with it."""
    from ..run.start import RunOptions
    from ..terminal import progress as terminal

    progress = terminal.progress(quiet=quiet, as_json=as_json)
    return progress, RunOptions(
        command=["attnbench", *sys.argv[1:]],
        listener=progress,
        wait=wait,
        allow_import=allow_import,
    )


def measure_all(
    jobs: Sequence[Callable[[Any], Any]],
    progress: Any,
    options: Any,
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    """Do one run after the other; exit with the worst exit code."""
    worst = 0
    for job in jobs:
        progress.start("starting a worker")
        try:
            result = job(options)
        finally:
            progress.end()
        print_result(result, quiet=quiet, as_json=as_json)
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
