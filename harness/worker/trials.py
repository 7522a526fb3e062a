"""What a worker does once, under its budget: a trial of a wall, a study; and what an exception of
them, or of a case, means.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any

import torch

from ...impls import input_order
from ...impls.discovery.loading import Backend
from ...impls.problem import Problem
from ..cases.case import Case, study_of
from ..files.errors import first_line, traceback_end
from ..measure.memory_budget import is_out_of_memory, out_of_memory_reason
from ..measure.peak_memory import release
from ..measure.prepared_call import CompileTime, make_gradient, make_tensors, prepare_call
from ..measure.warm_heap import WarmHeap
from ..rows.status import Status
from ..scenario.preflight import preflight
from ..studies import load
from .settings import Settings


def outcome(error: Exception, budget_bytes: int) -> dict[str, Any]:
    """Status, reason and log_tail of what a backend raised; called while it is handled."""
    if is_out_of_memory(error):
        reason = out_of_memory_reason(error, budget_bytes)
        return {"status": Status.OOM, "reason": reason, "log_tail": None}
    return {"status": Status.ERROR, "reason": first_line(error), "log_tail": traceback_end()}


# ---- one trial: inputs, one call, nothing else, under the budget ---------------------------------


def try_length(case: Case, settings: Settings) -> dict[str, Any]:
    """Status, reason, log_tail, and how long making the inputs and the call took.

    Compiling is not included, since it does not grow with N.
    """
    compiling = CompileTime()
    start = perf_counter()
    found: dict[str, Any] = {"status": Status.OK, "reason": "", "log_tail": None}
    try:
        with settings.budget.for_code():
            view = preflight(case, settings.device, settings.budget_bytes)
        found |= {"status": view.status or Status.OK, "reason": view.reason}
        start = perf_counter()
        if view.backend is not None:
            _call_once(case.problem, view.backend, settings, compiling)
    except Exception as error:  # noqa: BLE001 - a backend may raise anything: that is the result
        found = outcome(error, settings.budget_bytes)
    return {**found, "spent_s": perf_counter() - start - (compiling.ms or 0.0) / 1e3}


def _call_once(
    problem: Problem, backend: Backend, settings: Settings, compiling: CompileTime
) -> None:
    """As a user's program would: the inputs, the output's gradient, and one call."""
    device, budget = settings.device, settings.budget
    with compiling.timed(), budget.for_code():  # choosing a configuration needs memory of the GPU
        backend.compile_ahead(problem, device)
    order = input_order(backend.name, problem)
    tensors = make_tensors(problem, device, settings.seed, order)
    gradient = make_gradient(problem, device, settings.seed, order)
    with ExitStack() as stack:
        if backend.compiles:
            stack.enter_context(compiling.timed())
            stack.enter_context(budget.for_code())
        prepared = prepare_call(problem, backend, tensors, gradient)
    with prepared.in_force():
        prepared.run(prepared.setup())
        if device.type == "cuda":
            torch.cuda.synchronize(device)


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
