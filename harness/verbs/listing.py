"""`attnbench list`: backends, scenarios, models, studies, probes, runs and baselines, as tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ... import impls
from ..files.errors import BadInput, Spelling, option, spelled
from ..files.printable import duration_text, spaced
from .fields import DEFAULT_ROOT, DeviceKind, Runs, device_option
from .request import Option, Verb, refuse

if TYPE_CHECKING:
    import pandas as pd

MOST_RUNS = 2  # of the overview, which fits one screen of 80 x 24
BEGIN = ("quickstart", "head_cost", "memory_wall", "backends")  # what a newcomer runs first
What = Literal["backends", "scenarios", "models", "studies", "probes", "runs", "baselines"]
Row = tuple[str, ...]
Table = tuple[Row, Sequence[Row]]
"""Columns and rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    what: Annotated[What | None, Option("WHAT", argument=True)] = None
    """backends, scenarios, models, studies, probes, runs or baselines (default: where to begin)."""
    all: Annotated[bool, Option()] = False
    """Without WHAT, list every scenario with its question."""
    device: Annotated[DeviceKind, device_option("Device that backends should run on.")] = "auto"
    refresh: Annotated[bool, Option()] = False
    """Ask every backend again, even if no file changed."""
    runs: Runs = DEFAULT_ROOT

    def __post_init__(self) -> None:
        both = f"{option('all')}: {self.what} are listed whole; leave it out"
        other = f"{option('refresh')} needs backends; use `attnbench list backends --refresh`"
        refuse({both: self.all and self.what, other: self.refresh and self.what != "backends"})


def tell(request: ListRequest) -> int:
    """List scenarios, backends, models, runs and more. Without WHAT: where to begin."""
    from ..rows.names import no_runs

    if request.what is None:
        _overview(request)
        return 0
    columns, rows = LISTED[request.what](request)
    nothing = {
        "runs": spelled(no_runs(request.runs), Spelling.SHELL),
        "baselines": f"no baselines in {request.runs.absolute()}; name a run with `attnbench"
        " compare RUN --save main`",
    }
    if request.what == "backends":
        rows = folded(rows)
    rows = [_where_new(row, above) for above, row in pairwise([(), *rows])]
    _print(columns, rows, nothing.get(request.what, ""))
    if request.what == "backends":
        for sentence in impls.ignored():
            typer.echo(sentence, err=True)
    return 0


def _where_new(row: Row, above: Row) -> Row:
    """Without its first cells, as far as they are those of the row above."""
    same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(row, above, strict=False))])
    return ("",) * same + row[same:]


def listing(request: ListRequest) -> "pd.DataFrame":
    """The table as texts; scenarios if nothing is named. Raises Refusal."""
    import pandas as pd

    columns, rows = LISTED[request.what or "scenarios"](request)
    return pd.DataFrame(rows, columns=[*columns])


def _print(columns: Row, rows: Sequence[Row], nothing: str = "") -> None:
    """`nothing`: the sentence in place of a table without rows: what there is not, where it was
    looked for, and how to make one.
    """
    from ..terminal.progress import echo, say
    from .tables import table

    if rows or not nothing:
        echo(table("", columns, rows))
    else:
        say(nothing)


def _overview(request: ListRequest) -> None:
    """One screen."""
    from ..rows.run_store import runs
    from ..terminal.progress import say

    (name, *columns), rows = _scenarios(request)
    if request.all:
        _print((name, *columns), rows)
        typer.echo("")
    else:
        _print(("begin with", *columns), rows[: len(BEGIN)])
        say(f"\nmore scenarios: {', '.join(name for name, *_ in rows[len(BEGIN) :])}")
    say(f"backends: {', '.join(dict.fromkeys(one.partition(':')[0] for one in impls.names()))}")
    newest = [path.name for path in reversed(runs(request.runs))][:MOST_RUNS]
    say(f"newest runs: {', '.join(newest) or 'none yet'}")
    say("\nmore: attnbench list --all, backends, models, runs, baselines, studies, probes")


# ---- what is listed ------------------------------------------------------------------------------


def _backends(request: ListRequest) -> Table:
    from ..terminal.live_bar import busy
    from .backend_list import asked

    with busy("asking backends"):
        device, rows = asked(request.device, refresh=request.refresh)
    return ("backend", "what it is", "result", f"runs on {device}", "remark"), rows


def folded(rows: Iterable[Row]) -> list[Row]:
    """Variants of a backend of which the same holds as one row: `sdpa, :flash, :math`."""
    names: dict[Row, list[str]] = {}
    for name, *rest in rows:
        names.setdefault((name.partition(":")[0], *rest), []).append(name)
    found, described = [], set()
    for (file, about, *rest), (first, *others) in names.items():
        shown = ", ".join([first, *(f":{one.partition(':')[2]}" for one in others)])
        found.append((shown, "" if file in described else about, *rest))
        described.add(file)
    return found


def _scenarios(_: ListRequest) -> Table:
    """What a newcomer runs first comes first."""
    from ..scenario import summaries
    from ..scenario.names import CLAIMS

    def order(name: str, takes_min: float | None) -> tuple[object, ...]:
        begin = BEGIN.index(name) if name in BEGIN else len(BEGIN)
        return takes_min is None, name.startswith(CLAIMS), begin, takes_min or 0.0, name

    def takes(takes_min: float | None) -> str:
        return "needs a GPU" if takes_min is None else duration_text(60 * takes_min)

    every = sorted(summaries(), key=lambda one: order(one.name, one.takes_min))
    rows = [(one.name, takes(one.takes_min), one.question) for one in every]
    return ("scenario", "2 CPU cores", "question"), rows


def _models(_: ListRequest) -> Table:
    from ..models.config_file import shipped
    from ..models.resolve import model_of

    rows = []
    for name in shipped():
        model = model_of(name)
        longest = "not known" if model.max_context is None else spaced(model.max_context)
        rows += [(name, f"{count} x {one.text()}", longest) for one, count in model.attention()]
    return ("model", "attention", "longest context"), rows


def _studies(_: ListRequest) -> Table:
    from ..studies import every

    how = {name: f" (run --{one.takes} PATH)" * bool(one.takes) for name, one in every().items()}
    rows = [(name, f"{one.question}{how[name]}") for name, one in every().items()]
    return ("study", "question"), rows


def _probes(_: ListRequest) -> Table:
    from ..devices.probes import load, names

    rows = [
        (name, ", ".join(probe.MEASURES), *column)
        for name in names()
        for probe in [load(name)]
        for column in probe.COLUMNS.items()
    ]
    return ("probe", "measure", "column", "meaning"), rows


def _runs(request: ListRequest) -> Table:
    """With how they ended; of a broken one, why it cannot be read."""
    from ..rows.run_store import runs

    columns = ("run", "started (UTC)", "device", "cases", "question")
    return columns, [*map(_row_of, runs(request.runs))]


def _row_of(path: Path) -> Row:
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


def _baselines(request: ListRequest) -> Table:
    from ..rows.names import saved

    return ("baseline", "run", "saved (UTC)"), saved(request.runs)


LISTED: dict[str, Callable[[ListRequest], Table]] = {
    "backends": _backends,
    "scenarios": _scenarios,
    "models": _models,
    "studies": _studies,
    "probes": _probes,
    "runs": _runs,
    "baselines": _baselines,
}
VERBS = {
    "list": Verb(
        tell=tell,
        answer=listing,
        examples=("attnbench list", "attnbench list backends", "attnbench list runs"),
    )
}
