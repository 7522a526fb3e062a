"""Start a run or resume one: devices are opened, everything is planned, then measured."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ..scenario import Scenario
from ..scenario.selection import (
    Selection,
    refuse_empty,
    refuse_imports,
    refuse_unknown,
    refuse_unsaved,
)
from ..studies.attachments import Attachment, given_again, names_in
from .engine import Devices, RunOptions, Wanted
from .planning import new_run, point_finished, resumed_run
from .resumable import Unfinished
from .run_rows import RunPlan, RunResult
from .session import Here, RunSession, open_session
from .threads import worker_threads

__all__ = ["RunOptions", "open_run", "resume_run", "start_run"]


def start_run(
    scenario: Scenario, root: Path, seed: int, selection: Selection, options: RunOptions
) -> RunResult:
    """Measure a scenario into a new run folder. Raises Refusal."""
    wanted = _wanted(scenario, selection, options)
    with (
        worker_threads("elsewhere" if options.engine else scenario.device) as few_threads,
        (options.engine or Here()).open(wanted, options) as devices,
    ):
        plan = new_run(scenario, root, seed, selection, options, devices)
        return _measured(plan, devices, few_threads)


@contextmanager
def open_run(
    scenario: Scenario, root: Path, seed: int, selection: Selection, options: RunOptions
) -> Iterator[RunSession]:
    """A new run folder, for a caller that takes the run's steps itself. Raises Refusal."""
    wanted = _wanted(scenario, selection, options)
    with Here().open(wanted, options) as device:
        plan = new_run(scenario, root, seed, selection, options, device)
        with open_session(plan, device.worker, device.signals) as session:
            yield session
        point_finished(session.rows)


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
    found = Unfinished.read(path, retry_failed=retry_failed)
    if (finished := found.finished_result(options.listener)) is not None:
        return finished
    refuse_imports(found.backends, allowed=bool(options.allow_import))
    found.refuse_lacking()
    refuse_unknown(found.left_backends)
    wanted = Wanted(
        device=found.meta["device"],
        attachments=given_again(path, names_in(found.left("studies")), attachments),
        save_models=found.meta["scenario"].get("save_models") is True,
        backends=found.left_backends,
    )
    with (
        worker_threads(found.meta["device"], found.meta) as few_threads,
        (options.engine or Here()).open(wanted, options) as devices,
    ):
        plan = resumed_run(found, options, devices, force=force)
        return _measured(plan, devices, few_threads)


def _measured(plan: RunPlan, devices: Devices, few_threads: str) -> RunResult:
    remarks = [few_threads, *plan.remarks] if few_threads else plan.remarks
    rows = devices.measure(replace(plan, remarks=remarks))
    point_finished(rows)
    rows.result.few_threads = few_threads
    return rows.result


def _wanted(scenario: Scenario, selection: Selection, options: RunOptions) -> Wanted:
    """What to open for a new run, once nothing stands against it. Raises Refusal."""
    refuse_imports(scenario.backends, allowed=bool(options.allow_import))
    refuse_empty(scenario, selection)
    refuse_unsaved(scenario)
    return Wanted(
        device=scenario.device,
        attachments=selection.attachments,
        save_models=scenario.save_models,
        backends=scenario.backends,
    )
