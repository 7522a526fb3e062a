"""`attnbench list`: backends, scenarios, models, studies, probes and runs, as tables."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..files.errors import BadInput
from ..files.printable import duration_text, spaced
from .options import DEFAULT_ROOT, Device, PickedDevice, Root, option, switch
from .verbs import command, verbs

MOST_RUNS = 2  # of the overview, which fits one screen of 80 x 24
BEGIN = ("quickstart", "head_cost", "memory_wall", "backends")  # what a newcomer runs first
COLUMNS = ("2 CPU cores", "question")  # of scenarios, after their names
list_app = typer.Typer(
    cls=verbs("attnbench list", "attnbench list backends", "attnbench list runs"),
    help="List scenarios, backends, models, runs and more. Without a word: what to begin with.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@list_app.callback()
def overview(
    context: typer.Context,
    out: Root = DEFAULT_ROOT,
    every: Annotated[bool, option("--all", "Every scenario with its question.")] = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    from ... import impls
    from ..rows.names import no_runs
    from ..rows.run_store import runs
    from ..terminal.progress import say

    rows = scenarios()
    first = rows if every else rows[: len(BEGIN)]
    print_table(("scenario" if every else "begin with", *COLUMNS), first)
    typer.echo("")
    if not every:
        say(f"more scenarios: {', '.join(name for name, *_ in rows[len(BEGIN) :])}")
    say(f"backends: {', '.join(dict.fromkeys(one.partition(':')[0] for one in impls.names()))}")
    newest = [path.name for path in reversed(runs(out))][:MOST_RUNS]
    say(f"newest runs: {', '.join(newest) or no_runs(out)}")
    say("\nmore: attnbench list --all, backends, models, runs, baselines, studies, probes")


@command(list_app, name="backends")
def list_backends(
    device: PickedDevice = Device.AUTO,
    refresh: bool = switch("--refresh", "Ask every backend again; else only if a file changed."),
) -> None:
    """Backends, and the reason if one cannot run here."""
    from ... import impls
    from ..terminal.live_bar import busy
    from .backend_list import listing

    with busy("asking backends"):
        found = listing(device.value, refresh=refresh)
    columns = ("backend", "what it is", "result", f"runs on {found.device}", "remark")
    print_table(columns, folded(found.rows))
    for sentence in impls.ignored():
        typer.echo(sentence, err=True)


def folded(rows: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """Variants of a backend of which the same holds as one row: `sdpa, :flash, :math`."""
    from ... import impls

    names: dict[tuple[str, ...], list[str]] = {}
    for name, also, result, runs, why in rows:
        known = [one for one in also.split(", ") if one and not one.startswith("_")]
        remark = "; ".join(filter(None, (why, f"also named {', '.join(known)}" if known else "")))
        names.setdefault((name.partition(":")[0], result, runs, remark), []).append(name)
    found, described = [], set()
    for (file, *rest), some in names.items():
        first, *others = some
        shown = ", ".join([first, *(f":{one.partition(':')[2]}" for one in others)])
        found.append((shown, "" if file in described else impls.about(file), *rest))
        described.add(file)
    return found


@command(list_app, name="scenarios")
def list_scenarios() -> None:
    """Shipped scenarios: how long each takes, and the question that it answers."""
    print_table(("scenario", *COLUMNS), scenarios())


def scenarios() -> list[tuple[str, str, str]]:
    """Name, time and question of each, what a newcomer runs first."""
    from ..scenario import summaries
    from ..scenario.names import CLAIMS

    def order(name: str, takes_min: float | None) -> tuple[object, ...]:
        begin = BEGIN.index(name) if name in BEGIN else len(BEGIN)
        return takes_min is None, name.startswith(CLAIMS), begin, takes_min or 0.0, name

    every = sorted(summaries(), key=lambda one: order(one.name, one.takes_min))
    times = (one.takes_min for one in every)
    takes = ("needs a GPU" if time is None else duration_text(60 * time) for time in times)
    return [(one.name, time, one.question) for one, time in zip(every, takes, strict=True)]


@command(list_app, name="models")
def list_models() -> None:
    """Shipped models, and what their layers compute."""
    from ..models.config_file import shipped
    from ..models.resolve import model_of

    rows = []
    for name in shipped():
        model, first = model_of(name), name
        for layer, count in model.attention():
            longest = "not known" if model.max_context is None else spaced(model.max_context)
            rows.append((first, f"{count} x {layer.text()}", longest))
            first = ""
    print_table(("model", "attention", "longest context"), rows)


@command(list_app, name="studies")
def list_studies() -> None:
    """Studies, which time nothing, and the question that each answers."""
    from ..studies import load, names, takes, taking_files

    rows = [(name, load(name).QUESTION) for name in names()]
    rows += [(name, f"{load(name).QUESTION} (run --{takes(name)} PATH)") for name in taking_files()]
    print_table(("study", "question"), rows)


@command(list_app, name="probes")
def list_probes() -> None:
    """Probes, and the columns that each reads. With their names in a scenario's `measure`."""
    from ..devices.probes import load, names

    rows = []
    for name in names():
        probe = load(name)
        first = (name, ", ".join(probe.MEASURES))
        for column, meaning in probe.COLUMNS.items():
            rows.append((*first, column, meaning))
            first = ("", "")
    print_table(("probe", "measure", "column", "meaning"), rows)


@command(list_app, name="runs")
def list_runs(out: Root = DEFAULT_ROOT) -> None:
    """Runs in a folder, and how they ended. Of a broken one, why it cannot be read."""
    from ..rows.names import no_runs
    from ..rows.run_store import runs

    rows = [_row_of(path) for path in runs(out)]
    columns = ("run", "started (UTC)", "device", "cases", "question")
    print_table(columns, rows, none=no_runs(out))


@command(list_app, name="baselines")
def list_baselines(out: Root = DEFAULT_ROOT) -> None:
    """Baselines: name, run, when saved."""
    from ..rows import names

    rows = names.saved(out)
    none = f"no baselines in {out.absolute()}; name a run with `attnbench compare RUN --save main`"
    print_table(("baseline", "run", "saved (UTC)"), rows, none=none)


def _row_of(path: Path) -> tuple[str, ...]:
    from ..rows.run_store import is_being_written
    from ..rows.states import run_state
    from ..terminal.progress import counts

    try:
        state = run_state(path)
    except BadInput as error:
        return (path.name, "", "", f"broken: {error}", "")
    ended = counts(state.statuses)
    if is_being_written(state.path):
        ended = f"in progress: {state.statuses.total()} of {state.planned}"
    elif state.missing:
        ended = ", ".join(filter(None, [ended, f"{state.missing} not reached"]))
    started = state.started_utc[:16].replace("T", " ")
    return state.path.name, started, state.device, ended, state.question


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, none: str = "") -> None:
    """`none`: the sentence in place of a table without rows: what there is not, where it was looked
    for, and how to make one.
    """
    from ..terminal.progress import echo, say
    from ..verbs.tables import table

    rows = list(rows)
    if rows or not none:
        echo(table("", columns, rows))
    else:
        say(none)
