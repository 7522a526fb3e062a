"""`attnbench claims`: measure the scenarios claims_* and print each claim with its verdict."""

import json
from pathlib import Path

import typer

from ..files.errors import BadInput
from . import completion
from .measuring import run_options
from .options import (
    DEFAULT_ROOT,
    EARLIER,
    PlanName,
    Quiet,
    Root,
    Texts,
    Timeout,
    Wait,
    Where,
    own_option,
    switch,
)
from .texts import as_changes


def claims(
    runs: Texts = own_option(
        "--run RUN", "Use this run instead of measuring; repeatable.", EARLIER, completion.runs
    ),
    device: Where = None,
    plan: PlanName = None,
    out: Root = DEFAULT_ROOT,
    timeout: Timeout = None,
    wait: Wait = False,
    quiet: Quiet = False,
    as_json: bool = switch("--json", "The ledger as one JSON object."),
) -> None:
    """Test what textbooks say about attention, claim by claim. Measures the scenarios claims_*,
    prints every claim with its verdict, and writes one page of all.

    With --run no page is written. Progress, run folders and the page's path go to stderr. Exit
    codes as those of attnbench run.
    """
    from ...reports.pages import html, ledger
    from ...reports.pages.report import open_report, page_path
    from ..store.names import find
    from ..terminal.progress import echo
    from .report import written_to

    if runs and (device or plan or timeout is not None):
        raise BadInput("--run measures nothing; leave out --device, --plan and --timeout")
    if runs:
        folders, worst = [find(run, out) for run in runs], 0
    else:
        folders, worst = _measure(
            as_changes(device, timeout, None, plan), out, wait=wait, quiet=quiet
        )
    opened = open_report(folders)
    found = ledger.claims_of(opened)
    if as_json:
        typer.echo(json.dumps(ledger.document(found), indent=2, ensure_ascii=False))
    else:
        for part in ledger.render(found):
            echo(part)
    if not runs and folders:
        page = page_path(folders)
        with written_to(page, "--runs DIR"):
            html.write_pages(opened, page)
        typer.echo(f"page: {page}", err=True)
    raise typer.Exit(worst)


def _measure(changes: list[str], out: Path, *, wait: bool, quiet: bool) -> tuple[list[Path], int]:
    """Run folders and the worst exit code. A signal also skips the remaining scenarios."""
    from ..run.start import start_run
    from ..scenario import load
    from ..scenario.names import claims as names_of_claims
    from ..scenario.selection import Selection
    from ..terminal.progress import progress, started

    scenarios = [load(name, changes) for name in names_of_claims()]
    options = run_options(progress(quiet=quiet), wait=wait)
    folders, worst = [], 0
    for scenario in scenarios:
        with started(options.listener):
            result = start_run(scenario, out, 0, Selection(), options)
        folders.append(result.path)
        worst = max(worst, result.exit_code)
        if result.signal is not None:
            break
    return folders, worst
