"""Start a run or resume one: from a scenario, or a run's folder, to an open RunSession."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..fleet.elsewhere import resume_elsewhere, start_elsewhere
from ..learning.checkpoints.given import Checkpoint, names_in
from ..learning.checkpoints.given import given_again as given_again_files
from ..learning.model_files import refuse_bad_checkpoints, refuse_unsaved, with_model_files
from ..process.interpreter import Interpreter, given_again
from ..process.signals import Signals
from ..process.worker_process import ANSWER_S
from ..scenario import Scenario
from ..scenario.selection import Selection, refuse_empty, refuse_imports, refuse_unknown
from .environments import (
    Workers,
    changes,
    environments_of,
    first_of,
    first_workers,
    lock_device,
    refuse_changes,
)
from .planning import (
    SAFE_SHARE,
    RunOptions,
    budget_bytes_of,
    finished_result,
    new_run,
    pending_backends,
    pending_studies,
    planned_backends,
    point_finished,
    resumable,
    resumed_run,
)
from .resumable import check_resumable
from .run_rows import RunResult
from .session import RunSession, open_session

__all__ = ["SAFE_SHARE", "RunOptions", "open_run", "resume_run", "start_run"]


def start_run(
    scenario: Scenario, root: Path, seed: int, selection: Selection, options: RunOptions
) -> RunResult:
    """Measure a scenario into a new run folder. Raises Refusal."""
    if options.cluster is not None:
        return start_elsewhere(scenario, root, seed, selection, options, options.cluster)
    with open_run(scenario, root, seed, selection, options) as session:
        session.complete()
    return session.result


@contextmanager
def open_run(
    scenario: Scenario, root: Path, seed: int, selection: Selection, options: RunOptions
) -> Iterator[RunSession]:
    """A new run folder, for a caller that takes the run's steps itself. Raises Refusal."""
    refuse_imports(scenario.backends, allowed=options.allow_import)
    refuse_empty(scenario, selection)
    with _workers(scenario.device, selection.interpreters, options) as (workers, signals):
        worker = first_of(workers)
        device = worker.ready["device"]
        free_bytes = worker.ask({"op": "free"}, "free", ANSWER_S)["available_bytes"]
        files, pythons = selection.checkpoints, selection.interpreters
        budget_bytes = budget_bytes_of(scenario, free_bytes)
        refuse_unsaved(scenario)
        remarks = refuse_bad_checkpoints(files, device, budget_bytes, pythons, signals)
        plan = new_run(
            scenario,
            root,
            seed,
            selection,
            options,
            device=device,
            environments=environments_of(workers),
            free_bytes=free_bytes,
        )
        plan = with_model_files(plan, files, remarks, save=scenario.save_models)
        with open_session(plan, workers, signals) as session:
            yield session
        point_finished(session.rows)


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
    own paths are not used. Where nothing is left, neither these nor a worker are needed. Raises
    Refusal; EnvironmentUnmet if the machine or its software changed.
    """
    meta = resumable(path)
    finished = finished_result(path, meta, options.listener, retry_failed=retry_failed)
    if finished is not None:
        return finished
    interpreters = given_again(path, meta.get("environments", ()), interpreters)
    refuse_imports(planned_backends(meta), allowed=options.allow_import)
    check_resumable(path, meta)
    refuse_unknown(pending_backends(path, meta, retry_failed=retry_failed))
    again = {"retry_failed": retry_failed, "force": force}
    if options.cluster is not None:
        return resume_elsewhere(
            path, meta, interpreters, options, options.cluster, checkpoints=checkpoints, **again
        )
    with _workers(meta["device"], interpreters, options) as (workers, signals):
        environments = environments_of(workers)
        changed = changes(meta, environments)
        if not force:
            refuse_changes(changed)
        pending = pending_studies(path, meta, retry_failed=retry_failed)
        files = given_again_files(path, names_in(pending), checkpoints)
        budget_bytes = meta["memory_bytes"]
        remarks = refuse_bad_checkpoints(files, meta["device"], budget_bytes, interpreters, signals)
        plan = resumed_run(
            path, meta, environments, interpreters, options, changed, retry_failed=retry_failed
        )
        save = meta["scenario"].get("save_models") is True
        plan = with_model_files(plan, files, remarks, save=save)
        with open_session(plan, workers, signals) as session:
            session.complete()
        point_finished(session.rows)
        return session.result


@contextmanager
def _workers(
    device: str, interpreters: Sequence[Interpreter], options: RunOptions
) -> Iterator[tuple[Workers, Signals]]:
    """The first worker of each environment, with the device locked and signals under control."""
    with (
        Signals(embedded=options.embedded) as signals,
        first_workers(device, signals, interpreters, allow_import=options.allow_import) as workers,
        lock_device(first_of(workers), signals, wait=options.wait, held_device=options.held_device),
    ):
        yield workers, signals
