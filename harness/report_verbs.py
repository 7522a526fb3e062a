"""`attnbench report`, `show` and `export`: what a run found, as a page, in the terminal, and for other programs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .errors import BadInput
from .flags import DEFAULT_ROOT, Format, Root, RunName


class Pages(StrEnum):
    HTML = "html"
    MD = "md"


RunNames = Annotated[list[str], typer.Argument(metavar="RUN...", help="Run folders, or names under --out; 'latest' is the newest.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Default: report.html in the run folder or beside several runs; md goes to stdout."
    ),
]


def report(
    runs: RunNames,
    out: Root = DEFAULT_ROOT,
    output: Output = None,
    format_: Annotated[Pages, typer.Option("--format", help="html, or md for pull requests and job summaries.")] = Pages.HTML,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="DIR", help="Also write every figure into this folder, as SVG and PNG.")
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Write the report of one run or of several, one self-contained file, and print its path."""
    from .store import find_run, write_whole

    paths = [find_run(run, out) for run in runs]
    if figures is not None:
        from ..reports.figures import write_figures

        try:
            for path in write_figures(paths, figures):
                typer.echo(path, err=True)
        except OSError as error:
            raise BadInput(f"{figures}: cannot write figures here ({error.strerror}); choose another with --figures DIR") from None
    if format_ is Pages.MD:
        from ..reports.markdown import markdown

        text = markdown(paths)
        if output is None:
            typer.echo(text, nl=False)
        else:
            write_whole(output, text)
            typer.echo(output)
        return
    from ..reports.html import write

    page = write(paths, output)
    typer.echo(page)
    if open_it:
        typer.launch(page.resolve().as_uri())


def show(
    run: RunName = "latest",
    sections: Annotated[str, typer.Option("--sections", metavar="NAME[,NAME]", help="Which; by default the answers.")] = "",
    out: Root = DEFAULT_ROOT,
) -> None:
    """Print what a run found: its answers, and the tables behind them."""
    from ..reports import terminal
    from .show import echo
    from .store import find_run

    wanted = sections.split(",") if sections else terminal.USUAL
    unknown = [name for name in wanted if name not in terminal.names()]
    if unknown:
        raise BadInput(f"--sections: no section {unknown[0]!r}; there are: {', '.join(terminal.names())}")
    for part in terminal.shown([find_run(run, out)], wanted):
        echo(part)


def export(
    run: RunName,
    format_: Annotated[Format, typer.Option("--format", help="csv, json or md.")] = Format.CSV,
    out: Root = DEFAULT_ROOT,
) -> None:
    """Print the run as a tidy table, one row per case."""
    from ..reports.export import export as export_run
    from .store import find_run

    typer.echo(export_run(find_run(run, out), format_.value), nl=False)
