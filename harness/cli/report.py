"""`attnbench show`: what a run found, in the terminal, as a page, and for other programs."""

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
from ..verbs import completion
from .options import (
    DEFAULT_ROOT,
    Anonymous,
    Root,
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
ROWS = [ANSWERS, *(name for name in names() if name != ANSWERS)]
RUN = (
    "Folder of a run, or its name under --runs; 'latest' finished last, a scenario's"
    " name is its newest run."
)


class Pages(StrEnum):
    HTML = "html"
    MD = "md"


def written_to(path: Path, flag: str) -> AbstractContextManager[None]:
    """Raises BadInput where the file cannot be written."""
    return unless_refused(path, f"choose another place with {flag}")


def report(
    runs: Texts = own(argument("RUN", f"{RUN} The latest if not given.", completion.runs)),
    output: str | None = own_option(
        "--output -o FILE", "Default: report.html in the run's folder."
    ),
    out: Root = DEFAULT_ROOT,
) -> None:
    """Open a run's page: show -o report.html --open. One self-contained file of one run or several;
    its path is printed.
    """
    show(
        runs,
        everything=False,
        sections="",
        open_it=True,
        format_=Pages.HTML,
        output=output,
        figures=None,
        salvage=False,
        anonymous=False,
        out=out,
    )


def _write_page(
    runs: list[str],
    form: str,
    output: Path | None,
    out: Path,
    *,
    figures: Path | None,
    open_it: bool,
    salvage: bool,
    anonymous: bool,
) -> None:
    """A page, html or md; html is a file, by default report.html in the folder of the run."""
    from ..files.safe_files import write_output
    from ..terminal.live_bar import busy

    paths = _run_paths(runs, out)
    opened = _opened(paths, salvage=salvage, hide=anonymous)
    if figures is not None:
        from ...reports.pages.figures import write_figures

        with written_to(figures, "--figures DIR"):
            for path in write_figures(opened, figures):
                typer.echo(path, err=True)
    if form == Pages.MD:
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
            html.write_page(opened, page)  # a link that a run's folder came with is not followed
        elif not write_output(output, html.render(opened)):  # a pipe takes one page
            return
    typer.echo(page)
    if open_it:
        typer.launch(page.resolve().as_uri())


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
    from ..rows.names import find
    from ..rows.states import unfinished_after

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
    if form is None:
        return _print(
            named, sections, out, everything=everything, salvage=salvage, anonymous=anonymous
        )
    if sections or everything:
        raise BadInput(f"{'--sections' if sections else '--all'}: for the terminal; a page has all")
    if form not in [*Pages]:
        return _write_rows(named, form, output or STDOUT, out, salvage=salvage, anonymous=anonymous)
    page = None if output in (None, STDOUT) else Path(output)
    return _write_page(
        named,
        form,
        page,
        out,
        figures=figures,
        open_it=open_it,
        salvage=salvage,
        anonymous=anonymous,
    )


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


def _write_rows(
    runs: list[str], form: str, output: str, out: Path, *, salvage: bool, anonymous: bool
) -> None:
    """For other programs. Raises Refusal."""
    from ...reports.exports import export
    from ..files.safe_files import write_output

    done = export(_run_paths(runs, out), form, salvage=salvage, hide=anonymous)
    if output == STDOUT:
        if isinstance(done.content, bytes) and sys.stdout.isatty():
            raise BadInput(
                f"{form}: bytes, which a terminal cannot show; name a file with --output FILE"
            )
        typer.echo(done.content, nl=False)
    else:
        with written_to(Path(output), "--output FILE"):
            is_file = write_output(Path(output), done.content)
        if is_file:
            typer.echo(output)
    for note in done.notes:
        typer.echo(f"note: {note}", err=True)
