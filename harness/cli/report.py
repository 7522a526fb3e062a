"""`attnbench show`: what a run found, in the terminal, as a page, and for other programs; the last
two are `report` and `export` as well.
"""

import gc
import shlex
import sys
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...reports.exports import names  # imports no format, and no pandas
from ..files.errors import BadInput, instead_of, shown, unless_refused
from ..run.packs import of_names
from . import completion
from .options import (
    DEFAULT_ROOT,
    Anonymous,
    Root,
    RunNames,
    Salvage,
    Texts,
    argument,
    own,
    own_option,
    switch,
)

if TYPE_CHECKING:
    from ...reports.pages.report import Report

STDOUT, LATEST = "-", "latest"
ANSWERS = "json"
ROWS = [ANSWERS, *(name for name in names() if name not in (ANSWERS, "md"))]
"""Of `show`, where md is a page."""
RUN = (
    "Folder of a run, or its name under --runs; 'latest' finished last, a scenario's"
    " name is its newest run."
)
FORMATS = f"{', '.join(names())}. Without it: what FILE ends in, else csv."


class Pages(StrEnum):
    HTML = "html"
    MD = "md"


def written_to(path: Path, flag: str) -> AbstractContextManager[None]:
    """Raises BadInput where the file cannot be written."""
    return unless_refused(path, f"choose another place with {flag}")


def report(
    runs: RunNames,
    out: Root = DEFAULT_ROOT,
    output: Path | None = own_option(
        "--output -o FILE",
        "Default: report.html in the run folder or beside several runs; md goes to stdout.",
    ),
    format_: Pages = own_option(
        "--format html|md", "html, or md for pull requests and job summaries.", default=Pages.HTML
    ),
    figures: Path | None = own_option(
        "--figures DIR", "Also write every figure into this folder, as SVG and PNG."
    ),
    open_it: bool = switch("--open", "Open it in a browser."),
    salvage: Salvage = False,
    anonymous: Anonymous = False,
) -> None:
    """Write a page; now also `attnbench show --open` or `-o FILE`. One self-contained file of one
    run or of several; its path is printed.
    """
    from ..files.safe_files import write_output
    from ..terminal.live_bar import busy

    if (pack := of_names(*runs)) is not None and pack.reported is not None:
        if format_ is Pages.MD:
            raise BadInput("--format md: of what others published there is an html page")
        _of_no_effect(figures=figures, salvage=salvage, anonymous=anonymous)
        written = pack.reported(runs, output, out)
        if open_it and written is not None:
            typer.launch(written.resolve().as_uri())
        return
    paths = _run_paths(runs, out)
    opened = _opened(paths, salvage=salvage, hide=anonymous)
    if figures is not None:
        from ...reports.pages.figures import write_figures

        with written_to(figures, "--figures DIR"):
            for path in write_figures(opened, figures):
                typer.echo(path, err=True)
    if format_ is Pages.MD:
        from ...reports.pages.markdown import render

        text = render(opened)
        if output is None:
            typer.echo(text, nl=False)
        else:
            with written_to(output, "--output FILE"):
                if write_output(output, text):
                    typer.echo(output)
        return
    from ...reports.pages.report import page_path

    page = output or page_path(paths)
    with written_to(page, "--output FILE"), busy("drawing the page"):
        from ...reports.pages import html

        if output is None or not (
            output.is_symlink() or (output.exists() and not output.is_file())
        ):
            html.write_pages(opened, page)  # a link that a run's folder came with is not followed
        elif not write_output(output, html.render(opened)):  # a pipe takes one page
            return
    typer.echo(page)
    if open_it:
        typer.launch(page.resolve().as_uri())


def _of_no_effect(**given: object) -> None:
    """Says which of the options of runs were given."""
    if names := [f"--{name}" for name, value in given.items() if value]:
        typer.echo(f"note: {', '.join(names)}: no effect on what others published", err=True)


def _opened(paths: list[Path], *, salvage: bool, hide: bool) -> "Report":
    """With what was left out when the runs were read told on stderr."""
    from ..rows.run_files import shown_path
    from ..terminal.live_bar import busy

    with busy("reading the results"):
        from ...reports.pages.report import open_report

        gc.disable()  # as in compare: it would look through millions of objects again and again
        opened = open_report(paths, salvage=salvage, hide=hide)
    for run in opened.runs:
        for note in run.notes:
            typer.echo(f"note: {shown_path(run.path)}: {note}", err=True)
    return opened


def _run_paths(names: list[str], out: Path) -> list[Path]:
    """The folders of all runs that are named, each once."""
    from ..store.names import find
    from ..store.states import unfinished_after

    paths = [find(name, out) for name in names]
    if names == [LATEST] and (newer := unfinished_after(paths[0], out)) is not None:
        typer.echo(
            f"note: latest is what finished last; {newer.name} was started later and is not"
            f" finished: attnbench run --resume {shlex.quote(str(newer))}",
            err=True,
        )
    return list(dict.fromkeys(paths))


def show(
    runs: Texts = own(argument("RUN", f"{RUN} The latest if not given.", completion.runs)),
    everything: bool = switch("--all", "All sections, with the tables behind the answers."),
    sections: str = own_option(
        "--sections NAME[,NAME]", "Which, in place of the answers.", default=""
    ),
    open_it: bool = switch("--open", "The page, in a browser; report.html in the run's folder."),
    format_: str | None = own_option(
        "--format FORMAT",
        f"A page, html or md; for other programs the answers, json, or rows: {', '.join(ROWS[1:])}."
        " Without it: what FILE ends in.",
        None,
        completion.show_formats,
    ),
    output: str | None = own_option("--output -o FILE|-", "Where to; - is stdout."),
    figures: Path | None = own_option(
        "--figures DIR", "With a page: every figure too, as SVG and PNG."
    ),
    salvage: Salvage = False,
    anonymous: Anonymous = False,
    out: Root = DEFAULT_ROOT,
) -> None:
    """Print a run's answers; --open shows its page, --format csv its rows."""
    named = runs or [LATEST]
    form = _format_of(format_, output, is_page=open_it or figures is not None)
    pack = of_names(*named)
    if pack is not None and form not in (None, *Pages):
        raise BadInput(f"--format {form}: of runs; what others published is CSV itself")
    if form is None and pack is not None and pack.shown is not None:
        _of_no_effect(
            all=everything,
            sections=sections,
            salvage=salvage,
            anonymous=anonymous,
        )
        return pack.shown(named)
    if form is None:
        return _print(
            named, sections, out, everything=everything, salvage=salvage, anonymous=anonymous
        )
    if sections or everything:
        raise BadInput(f"{'--sections' if sections else '--all'}: for the terminal; a page has all")
    if form not in [*Pages]:
        return export(named, form, output or STDOUT, salvage, anonymous, out)
    page = None if output in (None, STDOUT) else Path(output)
    return report(named, out, page, Pages(form), figures, open_it, salvage, anonymous)


def _format_of(given: str | None, output: str | None, *, is_page: bool) -> str | None:
    """None for the terminal. Raises BadInput."""
    known = [*Pages, *ROWS]
    ending = Path(output or "").suffix.lower().removeprefix(".")
    form = given or (ending if ending in known else "html" if is_page else None)
    if (given and given not in known) or (output and not form):
        what = f"--format {shown(given)}" if given else f"--output {shown(output or '')}"
        raise BadInput(f"{what}: names no format; {instead_of(given or ending, known)}")
    return form


def _print(
    runs: list[str],
    sections: str,
    out: Path,
    *,
    everything: bool,
    salvage: bool,
    anonymous: bool,
) -> None:
    """In the terminal. Raises BadInput."""
    from ..terminal.live_bar import busy
    from ..terminal.progress import echo

    with busy("reading the results"):
        from ...reports.pages import terminal
        from ...reports.pages.report import per_question

    known = terminal.section_names()
    if sections and everything:
        raise BadInput("--sections: cannot be combined with --all; leave out one of them")
    requested = sections.split(",") if sections else known if everything else []
    requested = [terminal.OLDER.get(name, name) for name in requested]
    for name in requested:
        if name not in known:
            raise BadInput(f"--sections: no section {name!r}; {instead_of(name, known)}")
    opened = _opened(_run_paths(runs, out), salvage=salvage, hide=anonymous)
    for number, one in enumerate(per_question(opened)):
        typer.echo("" if number else None, nl=bool(number))
        brief = terminal.render_briefly(one)
        for part in terminal.render(one, requested) if requested else brief:
            echo(part)
    if not requested:
        typer.echo("more: the same with --all; the page: with --open")


def export(
    runs: RunNames,
    format_: str | None = own_option("--format FORMAT", FORMATS, None, completion.export_formats),
    output: str = own_option(
        "--output -o FILE|-",
        "Written whole or not at all; - is stdout, the default.",
        default=STDOUT,
    ),
    salvage: Salvage = False,
    anonymous: Anonymous = False,
    out: Root = DEFAULT_ROOT,
) -> None:
    """Write rows for other programs; now also `attnbench show --format`. A tidy table with one row
    per case, or a format of theirs: docs/exports.md has them.
    """
    from ...reports.exports import export as exported
    from ...reports.exports import load
    from ..files.safe_files import write_output

    notes: list[str] = []
    if format_ is None:
        ending = Path(output).suffix.lower().removeprefix(".")
        format_ = ending if ending in names() else "csv"
        if ending not in (*names(), "", "txt"):
            notes.append(
                f".{ending} names no format, so it is csv; --format takes {', '.join(names())}"
            )
    load(format_)  # another one is refused before a run is read
    done = exported(
        _run_paths(runs, out),
        format_,
        salvage=salvage,
        hide=anonymous,
    )
    if output == STDOUT:
        if isinstance(done.content, bytes) and sys.stdout.isatty():
            raise BadInput(
                f"{format_}: bytes, which a terminal cannot show; name a file with --output FILE"
            )
        typer.echo(done.content, nl=False)
    else:
        with written_to(Path(output), "--output FILE"):
            is_file = write_output(Path(output), done.content)
        if is_file:
            typer.echo(output)
    for note in (*notes, *done.notes):
        typer.echo(f"note: {note}", err=True)
