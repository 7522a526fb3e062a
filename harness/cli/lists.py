"""`attnbench list`: backends, scenarios, studies, probes and runs, as tables."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from .flags import DEFAULT_ROOT, Device, PickedDevice, Root, Verb, examples

if TYPE_CHECKING:
    from ..suites import RunState

MOST_RUNS = 5  # of the overview
ENDS = ("finished", "interrupted", "refused", "not started")
list_app = typer.Typer(
    help="List backends, scenarios, studies, probes or runs; without a word: all of them in short.",
    invoke_without_command=True,
    rich_markup_mode="rich",
    epilog=examples("attnbench list", "attnbench list backends", "attnbench list runs"),
)


@list_app.callback()
def overview(context: typer.Context, out: Root = DEFAULT_ROOT) -> None:
    if context.invoked_subcommand is not None:
        return
    from ... import impls
    from ..probes import names as probe_names
    from ..store import runs_and_suites
    from ..studies import names as study_names

    list_scenarios()
    newest = [path.name for path in reversed(runs_and_suites(out))][:MOST_RUNS]
    lines = {
        "backends": ", ".join(impls.names()),
        "studies": ", ".join(study_names()),
        "probes": ", ".join(probe_names()),
        "newest runs": ", ".join(newest) or f"none in {out}",
    }
    typer.echo("")
    for what, line in lines.items():
        typer.echo(f"{what}: {line}")
    typer.echo("\nmore: attnbench list backends, studies, probes or runs")


@list_app.command("backends", cls=Verb)
def list_backends(
    device: PickedDevice = Device.AUTO,
    refresh: Annotated[
        bool,
        typer.Option("--refresh", help="Ask every backend again; else only if a file changed."),
    ] = False,
) -> None:
    """Backends, and the reason if one cannot run here."""
    from ... import impls
    from ..live_bar import busy
    from .backend_list import listing

    with busy("asking backends"):
        found = listing(device.value, refresh=refresh)
    columns = ("backend", "or", "result", f"runs on {found.device}", "why not")
    print_table(columns, found.rows)
    for sentence in impls.ignored():
        typer.echo(sentence, err=True)


@list_app.command("scenarios", cls=Verb)
def list_scenarios() -> None:
    """Shipped scenarios, and the question that each answers."""
    from ..scenario import summaries

    print_table(("scenario", "question"), [(name, question) for name, _, question in summaries()])


@list_app.command("studies", cls=Verb)
def list_studies() -> None:
    """Studies, which time nothing, and the question that each answers."""
    from ..studies import load, names

    print_table(("study", "question"), [(name, load(name).QUESTION) for name in names()])


@list_app.command("probes", cls=Verb)
def list_probes() -> None:
    """Probes: the columns that each reads while a backend runs, and its names in `measure`."""
    from ..probes import load, names

    rows = []
    for name in names():
        probe = load(name)
        first = (name, ", ".join(probe.MEASURES))
        for column, meaning in probe.COLUMNS.items():
            rows.append((*first, column, meaning))
            first = ("", "")
    print_table(("probe", "measure", "column", "meaning"), rows)


@list_app.command("runs", cls=Verb)
def list_runs(out: Root = DEFAULT_ROOT) -> None:
    """Runs and suites in a folder: name, device, and how the cases ended."""
    from ..store import runs_and_suites
    from ..suites import is_suite, run_state, suite_state

    rows: list[tuple[str, ...]] = []
    for path in runs_and_suites(out):
        if not is_suite(path):
            rows.append(_run_row(run_state(path)))
            continue
        entries = suite_state(path).entries
        ended = Counter(entry.ended for entry in entries)
        known = (f"{ended[word]} {word}" for word in ENDS if ended[word])
        rows.append((path.name, "", f"suite of {len(entries)}: {', '.join(known)}"))
        for entry in entries:
            if entry.state is not None:
                rows.append(_run_row(entry.state, indent="  "))
            else:
                why = ": ".join(filter(None, (entry.ended, entry.refused)))
                rows.append((f"  {entry.scenario}", "", why))
    title = "" if rows else f"no runs in {out}"
    print_table(("run", "device", "cases"), rows, title)


def _run_row(state: "RunState", indent: str = "") -> tuple[str, ...]:
    from ..terminal import counts

    missing = f"{state.missing} not reached" if state.missing else ""
    ended = ", ".join(filter(None, [counts(state.statuses), missing]))
    return f"{indent}{state.path.name}", state.device, ended


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    from ..terminal import echo, table

    echo(table(title, columns, rows))
