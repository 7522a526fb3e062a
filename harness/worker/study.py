"""Run a study inside a worker."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from ..cases.case import study_of
from ..measure.peak_memory import release
from ..measure.warm_heap import WarmHeap
from ..rows.status import Status
from ..studies import load
from .ended import outcome
from .settings import Settings


def run_study(
    planned: Mapping[str, Any],
    settings: Settings,
    attached: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Status, reason, log_tail and findings.

    `planned`: the fields of the study. `attached`: what it is told of a file of the user's, if it
    looks at one.
    """
    study = study_of(planned)
    values: dict[str, Any] = dict(study.part)
    if attached is not None:
        values |= {**attached, "most_bytes": settings.budget_bytes}
    try:
        with _allocator_of(settings):
            run = load(study.study).run
            found = run(study.problem, settings.device, settings.seed, **values)
            findings = [
                one if isinstance(one, dict) else one.model_dump(exclude_unset=True)
                for one in found
            ]
        return {"status": Status.OK, "reason": "", "log_tail": None, "findings": findings}
    except Exception as error:  # noqa: BLE001 - a failed study does not end the run
        ended = outcome(error, settings.budget_bytes)
    release(settings.device)  # only now: the error's frames held the study's tensors
    return {**ended, "findings": []}


@contextmanager
def _allocator_of(settings: Settings) -> Iterator[None]:
    """Freed memory is kept or not as while latency is measured, `plan.allocator`.

    Without it every tensor above 128 KiB is new pages of the kernel in each training step.
    """
    if not settings.warm_heap or settings.device.type != "cpu":
        yield
        return
    heap = WarmHeap()
    heap.keep()
    try:
        yield
    finally:
        heap.give_back()
        release(settings.device)


def try_attachment(
    study: str, attached: Mapping[str, Any], budget_bytes: int, device: torch.device
) -> dict[str, list[str]]:
    """`problems`: why its study cannot look at an attachment."""
    return {"problems": load(study).tried(device, budget_bytes, **attached)}
