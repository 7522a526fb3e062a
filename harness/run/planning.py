"""What a run plans: run.json of a new one, and what is still to be measured of any."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...impls import is_ours
from ..cases.case import groups_of, study_of, wall_of
from ..files.errors import BadInput
from ..fleet.remote import Cluster
from ..machine.calibration_file import newest_calibration, why_unreadable
from ..process.interpreter import Interpreter
from ..rows.record import RETRIED, Status
from ..rows.run_files import read_meta
from ..scenario import Scenario
from ..scenario.selection import Selection, select
from ..store.run_store import Store, point_latest, results_root
from .environments import Change, Environments, measured_on
from .listener import Listener
from .planned import planned_fields
from .resumable import previous_rows
from .run_rows import PreviousRow, RunPlan, RunResult, RunRows
from .worker_pool import RunConfig

SAFE_SHARE = 0.7  # of the memory that is free at the start; our reference and others need the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run, whatever is measured.

    `wait`: for another run on the same device to end. `held_device`: "cpu" or a GPU's UUID, if the
    caller holds its lock. `gpu_uuid`: the GPU whose counters are read, if it is not the one that
    torch uses. `embedded`: in a process that goes on after the run, see Signals. `allow_import`: of
    user modules that backends are named by. `suite_entry`: the number of the run in its suite, into
    whose folder it is measured; None for a run of its own. `cluster`: whose devices measure, in
    place of this machine's.
    """

    command: Sequence[str]
    listener: Listener
    wait: bool = False
    held_device: str | None = None
    gpu_uuid: str | None = None
    embedded: bool = False
    allow_import: bool = False
    suite_entry: int | None = None
    cluster: Cluster | None = None


def new_run(
    scenario: Scenario,
    root: Path,
    seed: int,
    selection: Selection,
    options: RunOptions,
    *,
    device: str,
    environments: Environments,
    free_bytes: int,
    more: Mapping[str, Any] = {},
) -> RunPlan:
    """A new run folder, and what to measure for it. `more`: further fields of run.json.

    Raises Refusal.
    """
    selected = select(scenario, device, selection)
    environment = next(iter(environments.values()))
    entry = {} if options.suite_entry is None else {"suite_entry": options.suite_entry}
    meta = {
        "attnbench": environment["attnbench"],
        **entry,
        "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(options.command),
        "scenario": scenario.resolved(device),
        "own_backends": own_backends_of(scenario),
        "device": device,
        "memory_bytes": budget_bytes_of(scenario, free_bytes),
        "seed": seed,
        "environment": environment,
        "environments": [
            one.run_json(dict(environments[one.name])) for one in selection.interpreters
        ],
        "calibration": _calibration_of(results_root(root), environment),
        **more,
        **planned_fields(selected, selection.shard),
    }
    store = Store.create(root, scenario.name, meta)
    duplicates = selected.duplicates
    remarks = [f"{duplicates} duplicate problems were left out"] if duplicates else []
    if why := why_unreadable(results_root(root)):
        remarks.append(f"{why}; this run knows no peaks of the device")
    config = _config(meta, environment, selection.interpreters, options)
    return _plan(store, meta, config, options.listener, remarks)


def own_backends_of(scenario: Scenario) -> list[str]:
    """The backends that are no files of attnbench's: the user's, or of another package."""
    return [name for name in scenario.backends if not is_ours(name)]


def budget_bytes_of(scenario: Scenario, free_bytes: int) -> int:
    memory_gib = scenario.limits.memory_gib
    return int(memory_gib * 2**30 if memory_gib else SAFE_SHARE * free_bytes)


def resumable(path: Path) -> Mapping[str, Any]:
    """run.json of a run that can be resumed. Raises BadInput."""
    meta = read_meta(path)
    if meta.get("kernels"):
        raise BadInput(
            f"--resume: {path.name} is an audit of kernels; run `attnbench kernels audit` again,"
            " what was compiled is kept"
        )
    if meta.get("court"):
        raise BadInput(f"--resume: {path.name} is a court; run `attnbench selfcheck --court` again")
    return meta


def planned_backends(meta: Mapping[str, Any]) -> list[str]:
    return [fields["backend"] for fields in (*meta["cases"], *meta.get("walls", ()))]


def pending_backends(path: Path, meta: Mapping[str, Any], *, retry_failed: bool) -> list[str]:
    """The backends of the cases and walls of run.json that a resume measures."""
    final = _final(previous_rows(path), _repeated(retry_failed=retry_failed))
    planned = (*meta["cases"], *meta.get("walls", ()))
    return [fields["backend"] for fields in planned if fields["case"] not in final]


def pending_studies(
    path: Path, meta: Mapping[str, Any], *, retry_failed: bool
) -> list[Mapping[str, Any]]:
    """The studies of run.json that a resume runs."""
    final = _final(previous_rows(path), _repeated(retry_failed=retry_failed))
    return [fields for fields in meta.get("studies", ()) if fields["case"] not in final]


def finished_result(
    path: Path, meta: Mapping[str, Any], listener: Listener, *, retry_failed: bool
) -> RunResult | None:
    """The result of a run of which a resume would measure nothing, said to the listener; None if
    something is left. Raises BadInput.
    """
    previous = previous_rows(path)
    final = _final(previous, _repeated(retry_failed=retry_failed))
    planned = {kind: meta.get(kind, ()) for kind in ("cases", "walls", "studies")}
    cases = [fields["case"] for some in planned.values() for fields in some]
    if not cases or not all(case in final for case in cases):
        return None
    result = RunResult(path=path, statuses=Counter(row.status for row in previous.values()))
    count = sum(result.statuses[status] for status in RETRIED)
    remarks = [f"{count} failed; --retry-failed measures again what did"] if count else []
    listener.begin(path, {kind: len(some) for kind, some in planned.items()}, len(cases), remarks)
    if remark := point_latest(path.parent, path.name):
        listener.remark(remark)
    return result


def resumed_run(
    path: Path,
    meta: Mapping[str, Any],
    environments: Environments,
    interpreters: Sequence[Interpreter],
    options: RunOptions,
    changed: Sequence[Change],
    *,
    retry_failed: bool,
) -> RunPlan:
    """What a run still lacks. `changed`: facts that are not as they were, with --force."""
    names = ", ".join(one.name for one in changed)
    remark = f"measured in a different environment ({names} changed), as --force asked"
    store = Store.reopen(path)
    repeated = _repeated(retry_failed=retry_failed)
    config = _config(meta, next(iter(environments.values())), interpreters, options)
    remarks = [remark] if changed else []
    return _plan(store, meta, config, options.listener, remarks, previous_rows(path), repeated)


def point_finished(rows: RunRows) -> None:
    """Make `latest` this run if it is finished."""
    if rows.is_finished:
        path = rows.result.path
        if remark := point_latest(path.parent, path.name):
            rows.plan.listener.remark(remark)


def _config(
    meta: Mapping[str, Any],
    environment: Mapping[str, Any],
    interpreters: Sequence[Interpreter],
    options: RunOptions,
) -> RunConfig:
    """What run.json says, with what only the user may name and the device that is here now."""
    return replace(
        RunConfig.of(meta, options.gpu_uuid),
        measured_on=measured_on(environment),
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
    final = _final(previous, repeated)
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


def _repeated(*, retry_failed: bool) -> set[Status]:
    """What a resume measures again."""
    return {Status.INTERRUPTED, *(RETRIED if retry_failed else ())}


def _final(previous: Mapping[str, PreviousRow], repeated: Collection[str]) -> set[str]:
    """Whose row stands."""
    return {case for case, row in previous.items() if row.status not in repeated}


def _calibration_of(root: Path, environment: Mapping[str, Any]) -> dict[str, Any] | None:
    """The newest result of `attnbench doctor --calibrate` for this device."""
    on_gpu = environment["device"] == "cuda"
    name = environment["device_name" if on_gpu else "cpu"]
    return newest_calibration(root, environment["device_uuid"], name)
