"""`attnbench show`: what a run found, in the terminal, as a page, and for other programs."""

import gc
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...reports.exports import names  # imports no format, and no pandas
from ..files.errors import BadInput, instead_of, option
from . import completion
from .fields import DEFAULT_ROOT, Anonymous, OutputFile, RunName, Runs, Salvage, Several, listed
from .output import file_of, form_of, write, written_to
from .request import Option, Verb

if TYPE_CHECKING:
    from ...reports.pages.report import Report

LATEST = "latest"
PAGES = ("html", "md")
ROWS = tuple(sorted(names(), key=lambda name: name != "json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRequest:
    run: Annotated[
        Several,
        Option(
            "RUN",
            help=RunName,
            complete=completion.runs,
            parse=listed,
            argument=True,
        ),
    ] = (LATEST,)
    all: Annotated[bool, Option()] = False
    """Print all sections; long tables by name only, which --sections prints whole."""
    sections: Annotated[str, Option("NAME[,NAME]")] = ""
    """Print these sections instead of the answers."""
    open: Annotated[bool, Option()] = False
    """Open the page in a browser: report.html in the run's folder."""
    format: Annotated[
        str | None,
        Option(
            "FORMAT",
            help="A page (html, md), the answers (json) or rows"
            f" ({', '.join(ROWS[1:])}; default: by FILE's ending).",
            complete=completion.show_formats,
        ),
    ] = None
    output: OutputFile = None
    figures: Annotated[Path | None, Option("DIR")] = None
    """Also write each figure of the page as SVG and PNG."""
    salvage: Salvage = False
    anonymous: Anonymous = False
    runs: Runs = DEFAULT_ROOT

    def __post_init__(self) -> None:
        if self.sections and self.all:
            raise BadInput(
                f"{option('sections')}: cannot be combined with {option('all', True)}; leave out"
                " one of them"
            )
        if self.form and (self.sections or self.all):
            given = option("sections" if self.sections else "all")
            raise BadInput(f"{given}: only for the terminal; a page always has all sections")

    @property
    def form(self) -> str | None:
        """None for the terminal. Raises BadInput."""
        is_page = self.open or self.figures is not None
        return form_of(self.format, self.output, [*PAGES, *ROWS], "html" if is_page else None)


def tell(request: ShowRequest) -> int:
    """Print a run's answers; --open shows its page, --format csv its rows."""
    if request.form is None:
        _print(request)
    elif request.form in PAGES:
        _write_page(request)
    else:
        _write_rows(request, request.form)
    return 0


def tell_report(request: ShowRequest) -> int:
    """Open a run's page, as show --open does. Several runs share one self-contained file, whose
    path is printed.
    """
    return tell(replace(request, format=request.format or "html", open=True))


def _run_paths(request: ShowRequest) -> list[Path]:
    """The folders of all runs that are named, each once."""
    from ..rows.names import find
    from ..rows.states import unfinished_after

    paths = [find(name, request.runs) for name in request.run]
    latest = request.run == (LATEST,)
    if latest and (newer := unfinished_after(paths[0], request.runs)) is not None:
        typer.echo(
            f"note: the newer run {newer.name} is unfinished; continue it: attnbench run --resume"
            f" {shlex.quote(str(newer))}",
            err=True,
        )
    return list(dict.fromkeys(paths))


def _opened(request: ShowRequest, paths: list[Path]) -> "Report":
    """With what was left out when the runs were read told on stderr."""
    from ..rows.run_files import shown_path
    from ..terminal.live_bar import busy

    with busy("reading the results"):
        from ...reports.pages.report import open_report

        gc.disable()  # as in compare: it would look through millions of objects again and again
        opened = open_report(paths, salvage=request.salvage, hide=request.anonymous)
    for run in opened.runs:
        for note in run.notes:
            typer.echo(f"note: {shown_path(run.path)}: {note}", err=True)
    return opened


def _print(request: ShowRequest) -> None:
    """In the terminal. Raises BadInput."""
    from ..terminal.live_bar import busy
    from ..terminal.progress import echo

    with busy("reading the results"):
        from ...reports.pages import terminal
        from ...reports.pages.report import per_question

    known = terminal.section_names()
    wanted = request.sections.split(",") if request.sections else known if request.all else []
    for name in wanted:
        if name not in known:
            hint = instead_of(name, known)
            raise BadInput(f"{option('sections')}: no section {name!r}; {hint}")
    opened = _opened(request, _run_paths(request))
    for number, one in enumerate(per_question(opened)):
        if number:
            typer.echo("")
        all_parts = terminal.render(one, wanted, whole=not request.all)
        for part in all_parts if wanted else terminal.render_briefly(one):
            echo(part)
    if not wanted:
        typer.echo("more: the same with --all; the page: with --open")


def _write_page(request: ShowRequest) -> None:
    """html is a file, by default report.html in the folder of the run."""
    from ..files.safe_files import write_whole
    from ..terminal.live_bar import busy

    paths = _run_paths(request)
    opened = _opened(request, paths)
    if (figures := request.figures) is not None:
        from ...reports.pages.figures import write_figures

        with written_to(figures, option("figures", "DIR")):
            for path in write_figures(opened, figures):
                typer.echo(path, err=True)
    is_html = request.form == "html"
    with busy("drawing the page"):
        from ...reports.pages import html, markdown
        from ...reports.pages.report import page_path

        content = (html if is_html else markdown).render(opened)
    file = file_of(request.output)
    if file is not None or not is_html:
        write(content, request.output)
    else:
        with written_to(page_path(paths), option("output", "FILE")):
            write_whole(page_path(paths), content)  # no link that a run's folder came with
        typer.echo(page_path(paths))
    if request.open and is_html:
        typer.launch((file or page_path(paths)).resolve().as_uri())


def _write_rows(request: ShowRequest, form: str) -> None:
    """For other programs. Raises Refusal."""
    from ...reports.exports import export

    done = export(_run_paths(request), form, salvage=request.salvage, hide=request.anonymous)
    to_stdout = file_of(request.output) is None
    if to_stdout and isinstance(done.content, bytes) and sys.stdout.isatty():
        raise BadInput(
            f"{form}: found a terminal, which shows no bytes; wanted a file: add"
            f" {option('output', 'FILE')}"
        )
    write(done.content, request.output)
    for note in done.notes:
        typer.echo(f"note: {note}", err=True)


VERBS = {
    "show": Verb(
        tell=tell,
        examples=(
            "attnbench show",
            "attnbench show --open",
            "attnbench show quickstart --format csv -o cases.csv",
            "attnbench show quickstart memory_wall -o page.html",
        ),
    ),
    "report": Verb(
        tell=tell_report,
        examples=("attnbench report", "attnbench report quickstart memory_wall -o page.html"),
        usual="output runs",
    ),
}
