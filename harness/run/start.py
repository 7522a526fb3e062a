"""Start a run or resume one: devices are opened, everything is planned, then measured."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from ..files.errors import BadInput, option
from ..rows.run_files import read_meta
from ..scenario import Scenario
from ..scenario.selection import (
    Selection,
    refuse_empty,
    refuse_imports,
    refuse_unknown,
)
from ..studies.attachments import Attachment, given_again, names_in
from .engine import Devices, RunOptions
from .planning import finished_result, new_run, resumed_run, stored_spec
from .run_rows import LastRows, RunResult, RunRows
from .session import open_here
from .threads import worker_threads

__all__ = ["RunOptions", "resume_run", "start_run"]


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
