"""Run a study inside a worker."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch

from ..cases.case import study_of
from ..files.errors import first_line, traceback_end
from ..measure.memory_budget import is_out_of_memory, out_of_memory_reason
from ..measure.peak_memory import release
from ..measure.warm_heap import WarmHeap
from ..rows.record import Status
from ..studies import declared, load
from ..studies.attachments import OfFiles
from .phases import WorkerConfig


def run_study(request: Mapping[str, Any], config: WorkerConfig) -> dict[str, Any]:
    """Status, reason, log_tail and findings.

    `request`: the fields of the study, and if it needs them, `attached` (what it is told of a file
    of the user's) and `save_to` (the folder for the models that it trains).
    """
    study = study_of(request["study"])
    values: dict[str, Any] = dict(study.part)
    if (attached := request.get("attached")) is not None:
        values |= {**attached, "most_bytes": config.budget_bytes}
    if request.get("save_to") is not None and declared(study.study).saves_models:
        values["save_to"] = Path(request["save_to"])
    try:
        with _allocator_of(config):
            run = load(study.study).run
            found = run(study.problem, config.device, config.seed, **values)
            findings = [one if isinstance(one, dict) else one.stored() for one in found]
        return {"status": Status.OK, "reason": "", "log_tail": None, "findings": findings}
    except Exception as error:  # noqa: BLE001 - a failed study does not end the run
        status, reason, log_tail = Status.ERROR, first_line(error), traceback_end()
        if is_out_of_memory(error):
            status, reason = Status.OOM, out_of_memory_reason(error, config.budget_bytes)
    release(config.device)  # only now: the error's frames held the study's tensors
    return {"status": status, "reason": reason, "log_tail": log_tail, "findings": []}


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


def try_attachment(request: Mapping[str, Any], device: torch.device) -> dict[str, list[str]]:
    """`problems`: why its study cannot look at an attachment; `remarks`: for the user."""
    study = cast(OfFiles, load(request["study"]))
    return study.tried(device, request["budget_bytes"], **request["attached"])._asdict()
