"""A backend's wall inside a worker: its prediction, and one trial at one length."""

from contextlib import ExitStack
from time import perf_counter
from typing import Any

import torch

from ...impls import input_order
from ...impls.discovery.loading import Backend
from ...impls.problem import Problem
from ..cases.case import Case
from ..measure.prepared_call import CompileTime, make_gradient, make_tensors, prepare_call
from ..rows.status import Status
from ..scenario.preflight import preflight
from .ended import outcome
from .settings import Settings

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
