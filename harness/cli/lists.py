"""`attnbench list`: backends, scenarios, studies, probes and runs, as tables."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from .flags import DEFAULT_ROOT, Device, Root

if TYPE_CHECKING:
    import torch

    from ...impls.problem import Dtype

list_app = typer.Typer(
    help="List backends, scenarios, studies, probes or runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@list_app.command("backends")
def list_backends(
    device: Annotated[Device, typer.Option(help="Where they would run.")] = Device.AUTO,
) -> None:
    """Backends, and the reason if one cannot run here."""
    from ... import impls
    from ..errors import EnvironmentUnmet
    from ..terminal import busy

    with busy("asking backends"):
        from ..environment import pick_device

        found, why = pick_device(device.value)
        rows = [] if why else list(backend_rows(found))
    if why:
        raise EnvironmentUnmet(f"no {device.value} device: {why}")
    print_table(("backend", "or", "result", f"runs on {found.type}", "why not"), rows)
    for sentence in impls.ignored():
        typer.echo(sentence, err=True)


@list_app.command("scenarios")
def list_scenarios() -> None:
    """Shipped scenarios, and the question that each answers."""
    from ..scenario import summaries

    print_table(("scenario", "question"), [(name, question) for name, _, question in summaries()])


@list_app.command("studies")
def list_studies() -> None:
    """Studies, which time nothing, and the question that each answers."""
    from ..studies import load, names

    print_table(("study", "question"), [(name, load(name).QUESTION) for name in names()])


@list_app.command("probes")
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


@list_app.command("runs")
def list_runs(out: Root = DEFAULT_ROOT) -> None:
    """Runs in a folder: name, device, and how the cases ended."""
    from ..store import read_meta, read_rows, runs
    from ..terminal import counts

    rows = []
    for path in runs(out):
        meta = read_meta(path)
        last = {row["case"]: row["status"] for row in read_rows(path)}
        plans = ("cases", "walls", "studies", "kernels")
        missing = len({one["case"] for plan in plans for one in meta.get(plan, ())} - set(last))
        ended = [counts(Counter(last.values())), f"{missing} not reached" if missing else ""]
        rows.append((path.name, meta["device"], ", ".join(filter(None, ended))))
    title = "" if rows else f"no runs in {out}"
    print_table(("run", "device", "cases"), rows, title)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    from ..terminal import echo, table

    echo(table(title, columns, rows))


def backend_rows(device: "torch.device") -> Iterator[tuple[str, ...]]:
    """Each backend: its other names, what its result is, and whether it runs a small problem."""
    from ... import impls
    from ...impls.discovery.names import ALIASES
    from ...impls.problem import ALL_MASKS, Problem, windowed
    from ..cases import Case
    from ..preflight import preflight_outside_worker
    from ..record import Status

    dtype: Dtype = "bf16" if device.type == "cuda" else "fp32"
    core = Problem(batch=1, seq_len=128, d_model=256, heads=4, dtype=dtype)
    # asked next if the backend does not support `core`
    special = {"in scope layer": replace(core, scope="layer")}
    special |= {
        f"with mask {mask}": replace(core, mask=mask) for mask in ALL_MASKS if windowed(mask)
    }
    for name in impls.names():
        view = preflight_outside_worker(Case(backend=name, problem=core), device, 1 << 40)
        runs = view.status.value if view.status else "not asked" if view.reason else "yes"
        why = view.reason
        for only, problem in special.items() if view.status is Status.UNSUPPORTED else ():
            if (
                preflight_outside_worker(
                    Case(backend=name, problem=problem), device, 1 << 40
                ).status
                is None
            ):
                runs, why = "yes", f"{only} only"
                break
        also = ", ".join(also for also, real in ALIASES.items() if real == name)
        yield name, also, impls.exactness(name), runs, why
