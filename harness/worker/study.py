"""Run a study inside a worker."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..cases import study_of
from ..errors import first_line, traceback_end
from ..measure.peak_memory import release
from ..measure.warm_heap import WarmHeap
from ..record import Status
from ..studies import load
from .phases import WorkerConfig


def run_study(fields: Mapping[str, Any], config: WorkerConfig) -> dict[str, Any]:
    """Status, reason, log_tail and findings."""
    study = study_of(fields)
    try:
        with _allocator_of(config):
            findings = list(
                load(study.study).run(study.problem, config.device, config.seed, **dict(study.part))
            )
    except Exception as error:  # noqa: BLE001 - a failed study does not end the run
        reason, log_tail = first_line(error), traceback_end()
        return {"status": Status.ERROR, "reason": reason, "log_tail": log_tail, "findings": []}
    return {"status": Status.OK, "reason": "", "log_tail": None, "findings": findings}


@contextmanager
def _allocator_of(config: WorkerConfig) -> Iterator[None]:
    """Freed memory is kept or not as while latency is measured, `plan.allocator`.

    Without it every tensor above 128 KiB is new pages of the kernel in each training step.
    """
    if not config.warm_heap or config.device.type != "cpu":
        yield
        return
    heap = WarmHeap()
    heap.keep()
    try:
        yield
    finally:
        heap.give_back()
        release(config.device)
