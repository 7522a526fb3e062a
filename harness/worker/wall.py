"""A backend's wall inside a worker: its prediction, and one trial at one length."""

from contextlib import ExitStack
from time import perf_counter
from typing import Any

import torch

from ...impls import input_order
from ...impls.backend import Backend
from ...impls.problem import Problem
from ..cases.case import Case
from ..files.errors import first_line, traceback_end
from ..measure.memory_budget import Budget, is_out_of_memory, out_of_memory_reason
from ..measure.prepared_call import make_gradient, make_tensors, prepare_call
from ..measure.stopwatch import Stopwatch
from ..rows.record import Status
from ..scenario.preflight import preflight
from .phases import WorkerConfig

# ---- one trial: inputs, one call, nothing else, under the budget ---------------------------------


def try_length(case: Case, config: WorkerConfig, budget: Budget) -> dict[str, Any]:
    """Status, reason, log_tail, and how long making the inputs and the call took.

    Compiling is not included, since it does not grow with N.
    """
    log_tail: str | None = None
    compiling = Stopwatch()
    start = perf_counter()
    try:
        with budget.for_code():
            view = preflight(case, config.device, config.budget_bytes)
        status, reason = view.status or Status.OK, view.reason
        start = perf_counter()
        if view.backend is not None:
            _call_once(case.problem, view.backend, config, budget, compiling)
    except Exception as error:  # noqa: BLE001 - a backend may raise anything: that is the result
        if is_out_of_memory(error):
            status, reason = Status.OOM, out_of_memory_reason(error, config.budget_bytes)
        else:
            status, reason, log_tail = Status.ERROR, first_line(error), traceback_end()
    spent_s = perf_counter() - start - compiling.total_s
    return {"status": status, "reason": reason, "log_tail": log_tail, "spent_s": spent_s}


def _call_once(
    problem: Problem, backend: Backend, config: WorkerConfig, budget: Budget, compiling: Stopwatch
) -> None:
    """As a user's program would: the inputs, the output's gradient, and one call."""
    device = config.device
    order = input_order(backend.name, problem)
    tensors = make_tensors(problem, device, config.seed, order)
    gradient = make_gradient(problem, device, config.seed, order)
    with compiling, budget.for_code():
        backend.compile_ahead(problem, device)
    with ExitStack() as stack:
        if backend.compiles:
            stack.enter_context(compiling)
            stack.enter_context(budget.for_code())
        prepared = prepare_call(problem, backend, tensors, gradient)
    with prepared.in_force():
        prepared.run(prepared.setup())
        if device.type == "cuda":
            torch.cuda.synchronize(device)
