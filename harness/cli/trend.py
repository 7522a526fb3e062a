"""`attnbench trend`: cases over many runs, and the run from which on one differs."""

import json
from pathlib import Path

import typer

from ..files.errors import BadInput
from . import completion
from .options import DEFAULT_ROOT, OUTPUT, Root, Salvage, Texts, argument, own, own_option, switch

RUN = (
    "Runs, or folders of them; a scenario's name is all its runs, last:20 the twenty newest of the"
    " latest one's scenario, '2026*' a pattern. If not given: all of that scenario."
)


def trend(
    runs: Texts = own(argument("RUN", RUN, completion.runs)),
    base: str | None = own_option(
        "--base RUN",
        "Run that ratios are to: a folder, a name, a baseline. If not given: the first.",
        None,
        completion.runs,
    ),
    against: str | None = own_option(
        "--against BACKEND",
        "Backend whose times in the same runs stand for the machine's drift. If not given: the"
        " scenario's baseline.",
        None,
        completion.one_backend,
    ),
    only: Texts = own_option(
        "--only PATTERN", "Only cases whose id or backend matches; repeatable."
    ),
    open_it: bool = switch("--open", "The page, in a browser; trend.html in the folder of runs."),
    output: Path | None = own_option("--output -o FILE", "Write the page there.", OUTPUT),
    as_json: bool = switch("--json", "As JSON.", OUTPUT),
    salvage: Salvage = False,
    out: Root = DEFAULT_ROOT,
) -> None:
    """Cases over many runs: which became slower, from which run and commit on, and by how much.

    Runs of other machines, versions or settings than the newest are kept apart.
    """
    from ..api.sides import named_backend
    from ..store.names import find_all, find_run
    from ..terminal.live_bar import busy
    from .tables import show

    if as_json and (output is not None or open_it):
        raise BadInput("--json goes to stdout; leave out --output and --open")
    paths = find_all(runs or [], out)
    first = None if base is None else find_run(base, out).resolve()
    with busy("reading the results", quiet=as_json):
        from ...reports.comparison.trend import trend as trend_of
        from ...reports.comparison.trend_text import blocks, document

        found = trend_of(
            paths,
            first,
            against=against and named_backend(against),
            only=[named_backend(pattern) for pattern in only or ()],
            salvage=salvage,
        )
    if as_json:
        return typer.echo(json.dumps(document(found), allow_nan=False))
    if output is None and not open_it:
        return show(blocks(found))
    from ...reports.pages.trend import render
    from ..files.safe_files import write_output
    from .report import written_to

    page = output or out / "trend.html"
    with written_to(page, "--output FILE"), busy("drawing the page"):
        is_file = write_output(page, render(found, salvage=salvage))
    if is_file:
        typer.echo(page)
    if open_it and is_file:
        typer.launch(page.resolve().as_uri())
    return None
