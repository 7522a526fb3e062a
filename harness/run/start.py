"""Start a run or resume one: devices are opened, everything is planned, then measured. A new run
plans all that is selected, one that is resumed what it lacks.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from ..devices.calibration_file import newest_calibration, why_unreadable
from ..devices.load import worker_threads
from ..files.errors import BadInput, EnvironmentUnmet, first_line, option
from ..files.printable import visible
from ..rows.record import RETRIED
from ..rows.run_files import META, PLANNED, Document, read_meta, shown_path
from ..rows.run_store import Store, point_latest
from ..scenario import Scenario
from ..scenario.selection import (
    Selection,
    refuse_empty,
    refuse_imports,
    refuse_unknown,
    select,
)
from ..studies.attachments import Attachment, given_again, names_in
from .engine import Devices, RunOptions, changes, unlike
from .listener import Begun, Listener
from .run_rows import LastRows, RunResult, RunRows
from .session import open_here
from .spec import RunSpec, planned_fields

__all__ = ["RunOptions", "resume_run", "start_run"]

SAFE_SHARE = 0.7  # of the memory that is free at the start; our reference and others need the rest


# ---- a new run -----------------------------------------------------------------------------------


def new_run(
    scenario: Scenario,
    root: Path,
    seed: int,
    selection: Selection,
    options: RunOptions,
    devices: Devices,
) -> RunRows:
    """The whole plan, and its new folder. Raises Refusal, with nothing written."""
    environment = devices.environment
    memory_bytes = budget_bytes_of(scenario, devices.free_bytes)
    devices.attach(memory_bytes)
    selected = select(scenario, environment["device"], selection)
    on_gpu = environment["device"] == "cuda"
    name = environment["device_name" if on_gpu else "cpu"]
    listed = {"devices": devices.listed} if devices.listed else {}
    spec = RunSpec.new(
        scenario,
        planned_fields(selected, selection.shard),
        environment,
        command=list(options.command),
        memory_bytes=memory_bytes,
        seed=seed,
        calibration=newest_calibration(root, environment["device_uuid"], name),
        **listed,
    )
    store = Store.create(root, scenario.name, spec.document())
    rows = RunRows(spec, store, selected, options.listener)
    if selected.duplicates:
        rows.remarks.append(f"{selected.duplicates} duplicate problems were left out")
    if why := why_unreadable(root):
        rows.remarks.append(f"{why}; shares of the device's peaks are left out")
    return rows


def budget_bytes_of(scenario: Scenario, free_bytes: int) -> int:
    memory_gib = scenario.limits.memory_gib
    return int(memory_gib * 2**30 if memory_gib else SAFE_SHARE * free_bytes)


# ---- a run that is resumed -----------------------------------------------------------------------


def finished_result(
    path: Path, meta: Document, last: LastRows, final: set[str], listener: Listener
) -> RunResult | None:
    """Of a run that lacks nothing, said to the listener; None if it lacks something, or plans
    nothing. `final`: what is not measured again.
    """
    planned = {kind: meta.get(kind, ()) for kind in PLANNED}
    cases = {one["case"] for ones in planned.values() for one in ones}
    if not cases or cases - final:
        return None
    statuses = Counter(last.statuses.values())
    failed = sum(statuses[status] for status in RETRIED)
    again = f"{failed} failed; {option('retry_failed', True)} measures them again"
    counts = {kind: len(ones) for kind, ones in planned.items()}
    listener.begin(Begun(path, counts, len(cases), [again] if failed else []))
    if remark := point_latest(path.parent, path.name):
        listener.remark(remark)
    return RunResult(path=path, statuses=statuses)


def stored_spec(path: Path, meta: Document) -> RunSpec:
    """Raises BadInput if run.json lacks something that only measuring needs, or plans what only
    earlier versions measured.
    """
    replicas = any(one.get("replica") for one in meta.get("cases", ()))
    if meta.get("kernels") or meta.get("environments") or replicas:
        raise BadInput(
            f"{option('resume')}: {path.name} comes from an older version and plans what this one"
            " does not measure; start a new run"
        )
    try:
        return RunSpec.stored(meta)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{shown_path(path / META)}: {visible(first_line(error))}; the run cannot be resumed;"
            " start a new run"
        ) from None


def resumed_run(
    path: Path,
    spec: RunSpec,
    options: RunOptions,
    devices: Devices,
    *,
    retry_failed: bool,
    force: bool,
) -> RunRows:
    """What a run still lacks. Raises Refusal; EnvironmentUnmet if the machine or its software
    changed, unless `force`.
    """
    now = devices.environment
    changed = changes(spec.environment, now)
    measured_on = {one.get("device_uuid") for one in spec.devices or ()}
    if devices.listed or (measured_on and not spec.merged) or now["device_uuid"] in measured_on:
        changed = unlike(spec.environment, now)  # any device of the kind will do, or this one
    if changed and not force:
        one = changed[0]
        raise EnvironmentUnmet(
            f"{one.fact} was {one.then!r} when the run began and is {one.now!r} now; wanted the"
            f" same for all rows: start a new run, or add {option('force', True)}"
        )
    devices.attach(spec.memory_bytes)
    with ExitStack() as undone:
        store = Store.reopen(path)
        undone.callback(store.close)
        if devices.listed:
            store.add_devices(devices.listed)
        last = LastRows.read(path)  # nobody else adds rows from here on
        left = spec.units(but=last.final(retry_failed=retry_failed))
        undone.pop_all()
    rows = RunRows(spec, store, left, options.listener, last)
    if changed:
        names = ", ".join(one.fact for one in changed)
        rows.remarks.append(f"{names} changed since the run began ({option('force')})")
    return rows


# ---- both ----------------------------------------------------------------------------------------


def start_run(
    scenario: Scenario, root: Path, seed: int, selection: Selection, options: RunOptions
) -> RunResult:
    """Measure a scenario into a new run folder. Raises Refusal."""
    refuse_imports(scenario.backends, allowed=bool(options.allow_import))
    refuse_empty(scenario, selection)
    with (
        worker_threads("elsewhere" if options.engine else scenario.device) as few_threads,
        _opened(scenario.device, scenario.backends, selection.attachments, options) as devices,
    ):
        rows = new_run(scenario, root, seed, selection, options, devices)
        return _measured(rows, devices, few_threads)


def resume_run(
    path: Path,
    options: RunOptions,
    *,
    attachments: Sequence[Attachment] = (),
    retry_failed: bool = False,
    force: bool = False,
) -> RunResult:
    """Measure what a run still lacks.

    `attachments`: those of its studies, by their names; run.json's own paths are not used. Where
    nothing is left, neither these nor a worker are needed. Raises Refusal; EnvironmentUnmet if the
    machine or its software changed.
    """
    meta = read_meta(path)
    if meta.get("court"):
        raise BadInput(
            f"{option('resume')}: {path.name} tests backends that cheat, and cannot be resumed"
        )
    last = LastRows.read(path)
    final = last.final(retry_failed=retry_failed)
    if (finished := finished_result(path, meta, last, final, options.listener)) is not None:
        return finished
    spec = stored_spec(path, meta)
    planned = (one["backend"] for one in (*spec.cases, *spec.walls))
    refuse_imports(planned, allowed=bool(options.allow_import))
    left = spec.units(but=final)
    backends = [one.backend for one in left.planned if one.kind != "study"]
    refuse_unknown(backends)
    names = names_in(one.fields() for one in left.studies)
    files = given_again(path, names, attachments)
    with (
        worker_threads(spec.device, meta) as few_threads,
        _opened(spec.device, backends, files, options) as devices,
    ):
        rows = resumed_run(path, spec, options, devices, retry_failed=retry_failed, force=force)
        return _measured(rows, devices, few_threads)


def _measured(rows: RunRows, devices: Devices, few_threads: str) -> RunResult:
    if few_threads:
        rows.remarks.insert(0, few_threads)
    devices.measure(rows)
    rows.point_finished()
    rows.result.few_threads = few_threads
    return rows.result


def _opened(
    device: str, backends: Iterable[str], attachments: Sequence[Attachment], options: RunOptions
) -> AbstractContextManager[Devices]:
    if options.engine is None:
        return open_here(device, attachments, options)
    for one in attachments:
        raise BadInput(f"{one.flag}: works on this machine only; leave out {option('on')}")
    return options.engine.open(device, backends, options)
