"""What there is: backends, scenarios, studies, probes and runs, as tables."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from rich.table import Table

from ..terminal import counts, table


def backends_table(wanted: str) -> Table:
    """Every backend, what its result is, whether it runs on the device, and if not why, asked with
    a small everyday problem.
    """
    from ... import impls
    from ...impls.discovery.names import ALIASES
    from ...impls.problem import ALL_MASKS, Problem, windowed
    from ..cases import Case
    from ..environment import pick_device
    from ..errors import EnvironmentUnmet
    from ..preflight import preflight_outside_worker
    from ..record import Status

    device, why = pick_device(wanted)
    if why:
        raise EnvironmentUnmet(f"no {wanted} device: {why}")
    core = Problem(
        batch=1,
        seq_len=128,
        d_model=256,
        heads=4,
        dtype="bf16" if device.type == "cuda" else "fp32",
    )
    special = {"in scope layer": replace(core, scope="layer")}
    special |= {
        f"with mask {mask}": replace(core, mask=mask) for mask in ALL_MASKS if windowed(mask)
    }
    rows = []
    for name in impls.names():
        view = preflight_outside_worker(Case(backend=name, problem=core), device, 1 << 40)
        runs, why = (
            view.status.value if view.status else "not asked" if view.reason else "yes",
            view.reason,
        )
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
        rows.append((name, also, impls.exactness(name), runs, why))
    return table("", ("backend", "or", "result", f"runs on {device.type}", "why not"), rows)


def scenarios_table() -> Table:
    from ..scenario import summaries

    return table(
        "", ("scenario", "question"), [(name, question) for name, _, question in summaries()]
    )


def studies_table() -> Table:
    from .. import studies

    return table(
        "", ("study", "question"), [(name, studies.load(name).QUESTION) for name in studies.names()]
    )


def probes_table() -> Table:
    from .. import probes

    rows = []
    for name in probes.names():
        probe = probes.load(name)
        rows += [
            (
                name if place == 0 else "",
                ", ".join(probe.MEASURES) if place == 0 else "",
                column,
                meaning,
            )
            for place, (column, meaning) in enumerate(probe.COLUMNS.items())
        ]
    return table("", ("probe", "measure", "column", "meaning"), rows)


def runs_table(root: Path) -> Table:
    from ..store import read_meta, read_rows, runs

    rows = []
    for path in runs(root):
        meta = read_meta(path)
        last = {row["case"]: row["status"] for row in read_rows(path)}
        plans = ("cases", "walls", "studies", "kernels")
        missing = len({one["case"] for plan in plans for one in meta.get(plan, ())} - set(last))
        ended = ", ".join(
            part
            for part in (
                counts(Counter(last.values())),
                f"{missing} not reached" if missing else "",
            )
            if part
        )
        rows.append((path.name, meta["device"], ended))
    return table("" if rows else f"no runs in {root}", ("run", "device", "cases"), rows)
