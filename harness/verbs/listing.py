"""`attnbench list`: backends, scenarios, models, studies, probes, runs and baselines, as tables."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ... import impls
from ..devices.this_device import no_device
from ..files.errors import BadInput, EnvironmentUnmet, Spelling, option, spelled
from ..files.printable import duration_text, spaced
from ..files.safe_files import write_whole
from ..files.user_cache import cache_folder, installed_digest
from .fields import DEFAULT_ROOT, DeviceKind, Runs, device_option
from .request import Option, Verb, refuse

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from ...impls.problem import Dtype

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


# ---- which backends run here: asked once, then kept until a file or a package changes ------------


def asked(device: str, *, refresh: bool = False) -> tuple[str, list[Row]]:
    """The kind of device, and what runs on it. Raises EnvironmentUnmet without it.

    Asking imports torch and every backend that may be imported, which takes seconds. What was found
    is kept in $ATTNBENCH_CACHE, else in attnbench/ of the user's cache, with a digest of everything
    that it depends on.
    """
    from ...impls._triton.ran_on_gpu import not_yet_run

    path, digest = (
        cache_folder() / f"backends-{device}.json",
        installed_digest(device=device, kernels=not_yet_run()),
    )
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(path.read_bytes())
        if kept["digest"] == digest and not refresh:
            return str(kept["device"]), [tuple(map(str, row)) for row in kept["rows"]]
    from ..devices.environment import pick_device

    found, why = pick_device(device)
    if why:
        raise EnvironmentUnmet(f"{no_device(device, why)}; try with {option('device', 'cpu')}")
    rows = [*backend_rows(found)]
    with suppress(OSError):  # a home that cannot be written costs seconds, and nothing else
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {"digest": digest, "device": found.type, "rows": rows}
        write_whole(path, json.dumps(document) + "\n")
    return found.type, rows


def backend_rows(device: "torch.device") -> Iterator[Row]:
    """Each backend, and whether it runs a small problem."""
    from ...impls._triton.ran_on_gpu import not_yet_run
    from ...impls.discovery.names import ALIASES
    from ...impls.problem import ALL_MASKS, Problem, windowed
    from ..cases.case import Case
    from ..rows.record import Status
    from ..scenario.preflight import Preflight, preflight_outside_worker

    dtype: Dtype = "bf16" if device.type == "cuda" else "fp32"
    core = Problem(batch=1, seq_len=128, d_model=256, heads=4, dtype=dtype)
    # asked next if the backend does not support `core`
    special = {"in scope layer": replace(core, scope="layer")}
    special |= {
        f"with mask {mask}": replace(core, mask=mask) for mask in ALL_MASKS if windowed(mask)
    }
    special |= {
        "with lengths": replace(core, lengths="q96_q32", seq_len=0, kv_seq_len=0, causal=True),
        "with latent": replace(core, latent=128, rope=16),
        "with page": replace(core, page=16),
    }

    def view_of(name: str, problem: Problem) -> Preflight:
        return preflight_outside_worker(Case(backend=name, problem=problem), device, 1 << 40)

    for name in impls.names():
        view = view_of(name, core)
        runs = view.status.value if view.status else "not asked" if view.reason else "yes"
        runs = "broken" if impls.find(name).broken else runs
        why = view.reason
        if view.status is Status.UNSUPPORTED:
            fits = (only for only, one in special.items() if view_of(name, one).status is None)
            if only := next(fits, ""):
                runs, why = "yes", f"{only} only"
        also = [one for one, real in ALIASES.items() if real == name and one[0] != "_"]
        named = f"also named {', '.join(also)}" if also else ""
        kernels = not_yet_run() if name.partition(":")[0] == "triton" else ""
        remark = "; ".join(filter(None, (why, named, kernels)))
        yield name, impls.find(name).declared.about, impls.exactness(name), runs, remark


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
