"""Start a run or resume one on devices elsewhere: from a cluster to a run that is measured."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..files.errors import EnvironmentUnmet, Stopped
from ..learning.checkpoints.given import NEEDS, Checkpoint, given_again, names_in
from ..learning.checkpoints.shipped import shipped
from ..learning.model_files import refuse_unsaved, with_model_files
from ..process.interpreter import Interpreter
from ..process.signals import Signals
from ..process.worker_process import Interrupted
from ..run.environments import recorded_environments, refuse_changes, unlike
from ..run.planning import (
    RunOptions,
    budget_bytes_of,
    new_run,
    own_backends_of,
    pending_studies,
    planned_backends,
    point_finished,
    resumed_run,
)
from ..run.run_rows import RunPlan, RunResult
from ..scenario import Scenario
from ..scenario.selection import Selection, refuse_empty, refuse_imports
from .dispatch import run_on
from .node_device import settings_here
from .remote import Cluster, Fleet, Opened, Wanted, facts_of
from .shipping import Shipping


def start_elsewhere(
    scenario: Scenario,
    root: Path,
    seed: int,
    selection: Selection,
    options: RunOptions,
    cluster: Cluster,
) -> RunResult:
    """Measure a scenario into a new run folder. Raises Refusal."""
    refuse_imports(scenario.backends, allowed=options.allow_import)
    refuse_empty(scenario, selection)
    refuse_unsaved(scenario)
    models = list(map(shipped, selection.checkpoints))
    needs = needed(selection.checkpoints, save=scenario.save_models)
    opening = _fleet(cluster, scenario.device, selection.interpreters, options, needs)
    with opening as (fleet, signals):
        opened = list(fleet.opened.values())
        free_bytes = min(one.free_bytes for one in opened)
        shipping = Shipping(fleet, models)
        remarks = shipping.refuse_bad(budget_bytes_of(scenario, free_bytes))
        plan = new_run(
            scenario,
            root,
            seed,
            selection,
            options,
            device=opened[0].device,
            environments=opened[0].environments,
            free_bytes=free_bytes,
            more={"devices": [facts_of(one) for one in opened]},
        )
        remarks = [*own_files_remarks(own_backends_of(scenario)), *remarks]
        plan = with_model_files(plan, models, remarks, save=scenario.save_models)
        return _measure(plan, fleet, signals, shipping)


def resume_elsewhere(
    path: Path,
    meta: Mapping[str, Any],
    interpreters: Sequence[Interpreter],
    options: RunOptions,
    cluster: Cluster,
    *,
    checkpoints: Sequence[Checkpoint] = (),
    retry_failed: bool,
    force: bool,
) -> RunResult:
    """Measure what a run still lacks, wherever its rows were measured.

    Raises Refusal; EnvironmentUnmet if a device or its software is another.
    """
    pending = pending_studies(path, meta, retry_failed=retry_failed)
    given = given_again(path, names_in(pending), checkpoints)
    models, save = list(map(shipped, given)), meta["scenario"].get("save_models") is True
    needs = needed(given, save=save)
    with _fleet(cluster, meta["device"], interpreters, options, needs) as (fleet, signals):
        opened = list(fleet.opened.values())
        environments = opened[0].environments
        changed = unlike(recorded_environments(meta), environments)
        if not force:
            refuse_changes(changed)
        shipping = Shipping(fleet, models)
        remarks = shipping.refuse_bad(meta["memory_bytes"])
        plan = resumed_run(
            path, meta, environments, interpreters, options, changed, retry_failed=retry_failed
        )
        plan.store.add_devices([facts_of(one) for one in opened])
        remarks = [*own_files_remarks(own_planned(meta)), *remarks]
        plan = with_model_files(plan, models, remarks, save=save)
        return _measure(plan, fleet, signals, shipping)


def needed(checkpoints: Sequence[Checkpoint], *, save: bool) -> list[tuple[str, str]]:
    """Packages that every device must have, each with the extra that brings it."""
    return sorted({*(one.needs for one in checkpoints), *([NEEDS[True]] if save else ())})


def own_planned(meta: Mapping[str, Any]) -> list[str]:
    """The user's backends in run.json, which names them since version 0.2."""
    own = meta.get("own_backends")
    planned = dict.fromkeys(planned_backends(meta))
    return [name for name in planned if isinstance(own, list) and name in own]


def own_files_remarks(own_backends: Sequence[str]) -> list[str]:
    """What to say of backends that are not attnbench's: their files stay where they are."""
    if not own_backends:
        return []
    names = ", ".join(own_backends)
    return [
        f"{names}: no file of a backend of yours is sent; every node needs it, as an installed"
        " package, on PYTHONPATH, or in the folder that ATTNBENCH_BACKENDS names"
    ]


def refuse_unlike(devices: Sequence[Opened]) -> None:
    """Raises EnvironmentUnmet unless all are of one kind, with the same software and settings."""
    first, *others = devices
    for one in others:
        for found in unlike(first.environments, one.environments)[:1]:
            raise EnvironmentUnmet(
                f"{one.host} has {found.name} {found.now!r}, {first.host} {found.then!r}; a run"
                " measures with one, because rows of both would not be comparable: make them equal,"
                " or choose devices with --device-kind"
            )


@contextmanager
def _fleet(
    cluster: Cluster,
    device: str,
    interpreters: Sequence[Interpreter],
    options: RunOptions,
    needs: Sequence[tuple[str, str]],
) -> Iterator[tuple[Fleet, Signals]]:
    """Open and equal devices, with signals under control. Raises Refusal."""
    wanted = Wanted(
        device=device,
        interpreters=interpreters,
        allow_import=options.allow_import,
        wait=options.wait,
        settings=settings_here(),
        needs=needs,
    )
    with Signals(embedded=options.embedded) as signals:
        try:
            opening = cluster.open(wanted, signals.check)
            with opening as fleet:
                refuse_unlike(list(fleet.opened.values()))
                yield fleet, signals
        except Interrupted:  # while devices were opened: a run that has begun takes it itself
            raise Stopped(signals.received or signal.SIGINT) from None


def _measure(plan: RunPlan, fleet: Fleet, signals: Signals, shipping: Shipping) -> RunResult:
    """Rows of what no device measured name none."""
    config = replace(plan.config, measured_on={})
    plan = replace(plan, config=config, remarks=[*plan.remarks, *fleet.remarks])
    rows = run_on(plan, fleet, signals, shipping)
    point_finished(rows)
    return rows.result
