"""What a run plans: run.json of a new one, and what is still to be measured of any."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...impls import is_ours
from ..machine.calibration_file import newest_calibration, why_unreadable
from ..scenario import Scenario
from ..scenario.selection import SelectedCases, Selection, select
from ..scenario.shards import Shard, Units
from ..store.run_store import Store, point_latest
from .engine import Devices, RunOptions
from .first_worker import measured_on, refuse_changes
from .resumable import Unfinished
from .run_rows import PreviousRow, RunPlan, RunRows
from .studies import MODELS, Told
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
    device, environment = devices.device, devices.environment
    budget_bytes = budget_bytes_of(scenario, devices.free_bytes)
    attached, remarks = devices.attach(budget_bytes)
    selected = select(scenario, device, selection)
    listed = {"devices": list(devices.listed)} if devices.listed else {}
    meta = {
        "attnbench": environment["attnbench"],
        "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(options.command),
        "scenario": scenario.resolved(device),
        "own_backends": [name for name in scenario.backends if not is_ours(name)],
        "device": device,
        "memory_bytes": budget_bytes,
        "seed": seed,
        "environment": dict(environment),
        "calibration": _calibration_of(root, environment),
        **listed,
        **planned_fields(selected, selection.shard),
    }
    if why := why_unreadable(root):
        remarks = [f"{why}; this run knows no peaks of the device", *remarks]
    if selected.duplicates:
        remarks = [f"{selected.duplicates} duplicate problems were left out", *remarks]
    config = _config(meta, environment, options, attached)
    remarks = [*remarks, *devices.warnings(selected.units.planned, config)]
    store = Store.create(root, scenario.name, meta)
    return _plan(store, config, options, remarks, selected.units)


def planned_fields(selected: SelectedCases, shard: Shard | None) -> dict[str, Any]:
    """`cases`, `walls` and `studies`; in a shard also `shard`, with those of the other shards.

    In a shard each wall and study has its `place` in the whole plan; cases have their `group`.
    """
    whole = selected.whole
    plan = {
        "cases": [
            {**group.fields(), **case.fields()} for group in whole.groups for case in group.cases
        ],
        "walls": [wall.fields() for wall in whole.walls],
        "studies": [study.fields() for study in whole.studies],
    }
    if shard is None:
        return plan
    for name in ("walls", "studies"):
        plan[name] = [{"place": place, **one} for place, one in enumerate(plan[name])]
    own = set(selected.units.ids)
    elsewhere = {
        name: [one for one in planned if one["case"] not in own] for name, planned in plan.items()
    }
    return {
        **{name: [one for one in planned if one["case"] in own] for name, planned in plan.items()},
        "shard": {"number": shard.number, "of": shard.of, "elsewhere": elsewhere},
    }


def budget_bytes_of(scenario: Scenario, free_bytes: int) -> int:
    memory_gib = scenario.limits.memory_gib
    return int(memory_gib * 2**30 if memory_gib else SAFE_SHARE * free_bytes)


def resumed_run(
    found: Unfinished,
    options: RunOptions,
    devices: Devices,
    *,
    force: bool,
) -> RunPlan:
    """What a run still lacks. Raises Refusal; EnvironmentUnmet if the machine or its software
    changed, unless `force`.
    """
    meta = found.meta
    changed = devices.changes(meta)
    if not force:
        refuse_changes(changed)
    attached, remarks = devices.attach(meta["memory_bytes"])
    if changed:
        names = ", ".join(one.fact for one in changed)
        how = f"measured in a different environment ({names} changed), as --force asked"
        remarks = [how, *remarks]
    config = _config(meta, devices.environment, options, attached)
    with ExitStack() as undone:
        store = Store.reopen(found.path)
        undone.callback(store.close)
        if devices.listed:
            store.add_devices(devices.listed)
        found = found.read_again()  # nobody else adds rows from here on
        remarks = [*remarks, *devices.warnings(found.units.planned, config)]
        undone.pop_all()
    return _plan(store, config, options, remarks, found.units, found.previous)


def point_finished(rows: RunRows) -> None:
    """Make `latest` this run if it is finished."""
    if rows.is_finished:
        path = rows.result.path
        if remark := point_latest(path.parent, path.name):
            rows.plan.listener.remark(remark)


def _config(
    meta: Mapping[str, Any],
    environment: Mapping[str, Any],
    options: RunOptions,
    attached: Mapping[str, Told],
) -> RunConfig:
    """What run.json says, with what only the user may name and the device that is here now."""
    return replace(
        RunConfig.of(meta, options.gpu_uuid),
        measured_on=measured_on(environment),
        allow_import=options.allow_import,
        attached=attached,
        save_to=Path(MODELS) if meta["scenario"].get("save_models") is True else None,
    )


def _plan(
    store: Store,
    config: RunConfig,
    options: RunOptions,
    remarks: Sequence[str],
    left: Units,
    previous: Mapping[str, PreviousRow] = {},
) -> RunPlan:
    if config.save_to is not None:
        config = replace(config, save_to=store.path.resolve() / config.save_to)
    return RunPlan(
        store=store,
        config=config,
        listener=options.listener,
        remarks=remarks,
        previous=previous,
        units=left,
    )


def _calibration_of(root: Path, environment: Mapping[str, Any]) -> dict[str, Any] | None:
    """The newest result of `attnbench doctor --deep` for this device."""
    on_gpu = environment["device"] == "cuda"
    name = environment["device_name" if on_gpu else "cpu"]
    return newest_calibration(root, environment["device_uuid"], name)
