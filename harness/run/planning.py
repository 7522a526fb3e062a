"""What a run plans: run.json of a new one, and what is still to be measured of any."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...impls import is_ours
from ..cases.case import groups_of, study_of, wall_of
from ..cases.expected_time import Forecast
from ..files.errors import BadInput
from ..machine.calibration_file import newest_calibration, why_unreadable
from ..process.interpreter import Interpreter
from ..rows.record import RETRIED, Planned, Status
from ..rows.run_files import read_meta
from ..scenario import Scenario
from ..scenario.selection import Selection, select
from ..scenario.shards import Units
from ..store.run_store import Store, point_latest, results_root
from .engine import Devices, RunOptions
from .environments import measured_on, refuse_changes
from .forecast import forecast_of
from .listener import Listener
from .planned import planned_fields
from .resumable import previous_rows
from .run_rows import PreviousRow, RunPlan, RunResult, RunRows
from .study_files import MODELS, Told
from .worker_pool import RunConfig

SAFE_SHARE = 0.7  # of the memory that is free at the start; our reference and others need the rest


def new_run(
    scenario: Scenario,
    root: Path,
    seed: int,
    selection: Selection,
    options: RunOptions,
    devices: Devices,
) -> RunPlan:
    """The whole plan, and its new folder. Raises Refusal, with nothing written."""
    device, environment = devices.device, next(iter(devices.environments.values()))
    budget_bytes = budget_bytes_of(scenario, devices.free_bytes)
    attached, remarks = devices.attach(budget_bytes)
    selected = select(scenario, device, selection)
    entry = {} if options.suite_entry is None else {"suite_entry": options.suite_entry}
    listed = {"devices": list(devices.listed)} if devices.listed else {}
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
            one.run_json(dict(devices.environments[one.name])) for one in selection.interpreters
        ],
        "calibration": _calibration_of(results_root(root), environment),
        **listed,
        **planned_fields(selected, selection.shard),
    }
    if why := why_unreadable(results_root(root)):
        remarks = [f"{why}; this run knows no peaks of the device", *remarks]
    if selected.duplicates:
        remarks = [f"{selected.duplicates} duplicate problems were left out", *remarks]
    config = _config(meta, environment, selection.interpreters, options, attached)
    units = Units(selected.groups, selected.walls, selected.studies)
    forecast = _forecast(units, config, devices)
    store = Store.create(root, scenario.name, meta)
    config = _saving(config, store, save=scenario.save_models)
    return _plan(store, config, options, remarks, units, {}, forecast)


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
    interpreters: Sequence[Interpreter],
    options: RunOptions,
    devices: Devices,
    *,
    retry_failed: bool,
    force: bool,
) -> RunPlan:
    """What a run still lacks. Raises Refusal; EnvironmentUnmet if the machine or its software
    changed, unless `force`.
    """
    changed = devices.changes(meta)
    if not force:
        refuse_changes(changed)
    attached, remarks = devices.attach(meta["memory_bytes"])
    if changed:
        names = ", ".join(one.name for one in changed)
        how = f"measured in a different environment ({names} changed), as --force asked"
        remarks = [how, *remarks]
    environment = next(iter(devices.environments.values()))
    config = _config(meta, environment, interpreters, options, attached)
    previous = previous_rows(path)
    units = _left(meta, _final(previous, _repeated(retry_failed=retry_failed)))
    forecast = _forecast(units, config, devices)
    store = Store.reopen(path)
    if devices.listed:
        store.add_devices(devices.listed)
    config = _saving(config, store, save=meta["scenario"].get("save_models") is True)
    return _plan(store, config, options, remarks, units, previous, forecast)


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
    attached: Mapping[str, Told],
) -> RunConfig:
    """What run.json says, with what only the user may name and the device that is here now."""
    return replace(
        RunConfig.of(meta, options.gpu_uuid),
        measured_on=measured_on(environment),
        pythons={one.name: one.path for one in interpreters},
        allow_import=options.allow_import,
        attached=attached,
    )


def _saving(config: RunConfig, store: Store, *, save: bool) -> RunConfig:
    return replace(config, save_to=store.path.resolve() / MODELS) if save else config


def _left(meta: Mapping[str, Any], final: Collection[str]) -> Units:
    """What run.json plans, without what has a final row."""

    def left(kind: str) -> list[Mapping[str, Any]]:
        return [fields for fields in meta.get(kind, ()) if fields["case"] not in final]

    walls, studies = map(wall_of, left("walls")), map(study_of, left("studies"))
    return Units(groups_of(left("cases")), tuple(walls), tuple(studies))


def _forecast(left: Units, config: RunConfig, devices: Devices) -> Forecast | None:
    """How long it will take; None if no worker can say how fast its machine is."""
    planned: list[Planned] = [case for group in left.groups for case in group.cases]
    planned += [*left.walls, *left.studies]
    found = devices.foresee(planned, config.budget_bytes)
    return None if found is None else forecast_of(planned, config, found)


def _plan(
    store: Store,
    config: RunConfig,
    options: RunOptions,
    remarks: Sequence[str],
    left: Units,
    previous: Mapping[str, PreviousRow],
    forecast: Forecast | None,
) -> RunPlan:
    return RunPlan(
        store=store,
        config=config,
        listener=options.listener,
        remarks=remarks,
        previous=previous,
        groups=left.groups,
        walls=left.walls,
        studies=left.studies,
        forecast=forecast,
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
