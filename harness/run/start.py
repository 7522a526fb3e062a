"""Start a run or resume one: from a scenario, or a run's folder, to an open RunSession."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...impls import is_ours
from ..calibration.file import newest_calibration
from ..cases import groups_of, study_of, wall_of
from ..errors import BadInput
from ..listener import Listener
from ..process.interpreter import Interpreter, given_again
from ..process.signals import Signals
from ..process.worker_process import ANSWER_S
from ..record import RETRIED, Status
from ..run_files import read_meta
from ..scenario import Scenario
from ..selection import Selection, refuse_imports, select
from ..store import Store, point_latest, results_root
from ..studies.checkpoints.given import Checkpoint
from ..studies.checkpoints.given import given_again as given_again_files
from .environments import (
    Workers,
    changes,
    first_of,
    first_workers,
    lock_device,
    measured_on,
    refuse_changes,
)
from .model_files import refuse_bad_checkpoints, refuse_unsaved, with_model_files
from .planned import planned_fields
from .resumable import check_resumable, previous_rows
from .session import PreviousRow, RunPlan, RunResult, RunSession, open_session
from .worker_pool import RunConfig

SAFE_SHARE = 0.7  # of the memory that is free at the start; our reference and others need the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run, whatever is measured.

    `wait`: for another run on the same device to end. `gpu_uuid`: the GPU whose counters are read,
    if it is not the one that torch uses. `embedded`: in a process that goes on after the run, see
    Signals. `allow_import`: of user modules that backends are named by. `suite_entry`: the number
    of the run in its suite, into whose folder it is measured; None for a run of its own.
    """

    command: Sequence[str]
    listener: Listener
    wait: bool = False
    gpu_uuid: str | None = None
    embedded: bool = False
    allow_import: bool = False
    suite_entry: int | None = None


def start_run(
    scenario: Scenario, root: Path, seed: int, selection: Selection, options: RunOptions
) -> RunResult:
    """Measure a scenario into a new run folder. Raises Refusal."""
    with open_run(scenario, root, seed, selection, options) as session:
        session.complete()
    return session.result


@contextmanager
def open_run(
    scenario: Scenario, root: Path, seed: int, selection: Selection, options: RunOptions
) -> Iterator[RunSession]:
    """A new run folder, for a caller that takes the run's steps itself. Raises Refusal."""
    refuse_imports(scenario.backends, allowed=options.allow_import)
    with _workers(scenario.device, selection.interpreters, options) as (workers, signals):
        worker = first_of(workers)
        device, environment = worker.ready["device"], worker.ready["environment"]
        selected = select(scenario, device, selection)
        memory_gib = scenario.limits.memory_gib
        free_bytes = worker.ask({"op": "free"}, "free", ANSWER_S)["available_bytes"]
        budget_bytes = int(memory_gib * 2**30 if memory_gib else SAFE_SHARE * free_bytes)
        refuse_unsaved(scenario)
        refuse_bad_checkpoints(
            selection.checkpoints, device, budget_bytes, selection.interpreters, signals
        )
        entry = {} if options.suite_entry is None else {"suite_entry": options.suite_entry}
        meta = {
            "attnbench": environment["attnbench"],
            **entry,
            "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": list(options.command),
            "scenario": scenario.resolved(device),
            "own_backends": [name for name in scenario.backends if not is_ours(name)],
            "device": device,
            "memory_bytes": budget_bytes,
            "seed": seed,
            "environment": environment,
            "environments": [
                one.run_json(workers[one.name].ready["environment"])
                for one in selection.interpreters
            ],
            "calibration": _calibration_of(results_root(root), environment),
            **planned_fields(selected, selection.shard),
        }
        store = Store.create(root, scenario.name, meta)
        duplicates = selected.duplicates
        remarks = [f"{duplicates} duplicate problems were left out"] if duplicates else []
        config = _config(meta, workers, selection.interpreters, options)
        config = with_model_files(config, meta, store.path, selection.checkpoints)
        plan = _plan(store, meta, config, options.listener, remarks)
        with open_session(plan, workers, signals) as session:
            yield session
        _point_latest(session)


def resume_run(
    path: Path,
    options: RunOptions,
    interpreters: Sequence[Interpreter] = (),
    *,
    checkpoints: Sequence[Checkpoint] = (),
    retry_failed: bool = False,
    force: bool = False,
) -> RunResult:
    """Measure what a run still lacks.

    `interpreters`, `checkpoints`: those of its environments and studies, by their names; run.json's
    own paths are not used. Raises Refusal; EnvironmentUnmet if the machine or its software changed.
    """
    meta = read_meta(path)
    if meta.get("kernels"):
        raise BadInput(
            f"--resume: {path.name} is an audit of kernels; run `attnbench kernels audit` again,"
            " what was compiled is kept"
        )
    if meta.get("court"):
        raise BadInput(f"--resume: {path.name} is a court; run `attnbench selfcheck --court` again")
    interpreters = given_again(path, meta.get("environments", ()), interpreters)
    backends = [fields["backend"] for fields in (*meta["cases"], *meta.get("walls", ()))]
    refuse_imports(backends, allowed=options.allow_import)
    check_resumable(path, meta)
    with _workers(meta["device"], interpreters, options) as (workers, signals):
        changed = changes(meta, workers)
        if not force:
            refuse_changes(changed)
        names = ", ".join(one.name for one in changed)
        remarks = [f"measured in a different environment ({names} changed), as --force asked"]
        previous = previous_rows(path)
        repeated = {Status.INTERRUPTED, *(RETRIED if retry_failed else ())}
        config = _config(meta, workers, interpreters, options)
        pending = [one for one in meta.get("studies", ()) if not _is_final(one, previous, repeated)]
        files = given_again_files(path, pending, checkpoints)
        refuse_bad_checkpoints(files, meta["device"], config.budget_bytes, interpreters, signals)
        config = with_model_files(config, meta, path, files)
        store = Store.reopen(path)
        remarks = remarks if changed else []
        plan = _plan(store, meta, config, options.listener, remarks, previous, repeated)
        with open_session(plan, workers, signals) as session:
            session.complete()
        _point_latest(session)
        return session.result


def _point_latest(session: RunSession) -> None:
    if session.is_finished:
        path = session.result.path
        if remark := point_latest(path.parent, path.name):
            session.plan.listener.remark(remark)


@contextmanager
def _workers(
    device: str, interpreters: Sequence[Interpreter], options: RunOptions
) -> Iterator[tuple[Workers, Signals]]:
    """The first worker of each environment, with the device locked and signals under control."""
    with (
        Signals(embedded=options.embedded) as signals,
        first_workers(device, signals, interpreters, allow_import=options.allow_import) as workers,
        lock_device(first_of(workers), signals, wait=options.wait),
    ):
        yield workers, signals


def _config(
    meta: Mapping[str, Any],
    workers: Workers,
    interpreters: Sequence[Interpreter],
    options: RunOptions,
) -> RunConfig:
    """What run.json says, with what only the user may name and the device that is here now."""
    return replace(
        RunConfig.of(meta, options.gpu_uuid),
        measured_on=measured_on(first_of(workers).ready["environment"]),
        pythons={one.name: one.path for one in interpreters},
        allow_import=options.allow_import,
    )


def _plan(
    store: Store,
    meta: Mapping[str, Any],
    config: RunConfig,
    listener: Listener,
    remarks: Sequence[str],
    previous: Mapping[str, PreviousRow] | None = None,
    repeated: Collection[str] = (),
) -> RunPlan:
    """What run.json plans, without the cases whose previous row stands."""
    previous = previous or {}
    final = {case for case in previous if _is_final({"case": case}, previous, repeated)}
    cases = [fields for fields in meta["cases"] if fields["case"] not in final]
    walls, studies = meta.get("walls", ()), meta.get("studies", ())
    return RunPlan(
        store=store,
        config=config,
        listener=listener,
        remarks=remarks,
        previous=previous,
        groups=groups_of(cases),
        walls=tuple(wall_of(fields) for fields in walls if fields["case"] not in final),
        studies=tuple(study_of(fields) for fields in studies if fields["case"] not in final),
    )


def _is_final(
    planned: Mapping[str, Any], previous: Mapping[str, PreviousRow], repeated: Collection[str]
) -> bool:
    """Whether the row of what run.json plans stands."""
    row = previous.get(planned["case"])
    return row is not None and row.status not in repeated


def _calibration_of(root: Path, environment: Mapping[str, Any]) -> dict[str, Any] | None:
    """The newest result of `attnbench doctor --calibrate` for this device."""
    on_gpu = environment["device"] == "cuda"
    name = environment["device_name" if on_gpu else "cpu"]
    return newest_calibration(root, environment["device_uuid"], name)
