"""One try inside a worker: inputs, one call, nothing else, under the budget that is in
force there.
"""

import traceback
from contextlib import nullcontext
from time import perf_counter
from typing import Any

import torch

from ...impls.backend import TORCH_DTYPE, Backend
from ...impls.problem import Problem
from ..cases import Case
from ..measure.correctness import output_shape
from ..measure.memory_budget import Budget, is_out_of_memory, out_of_memory_reason
from ..measure.prepared_call import make_subject, make_tensors
from ..preflight import outlook
from ..record import Status
from .attempt import Setting, first_line


def probe(case: Case, setting: Setting, budget: Budget) -> dict[str, Any]:
    """What came of it, and how long making the inputs and the call took; compiling is not in it,
    since it does not grow with N.
    """
    log_tail: str | None = None
    compiling_s = 0.0
    start = perf_counter()
    try:
        with budget.for_code():
            view = outlook(case, setting.device, setting.budget_bytes)
        status, reason = view.status or Status.OK, view.reason
        start = perf_counter()
        if view.backend is not None:
            compiling_s = once(case.problem, view.backend, setting, budget)
    except Exception as error:  # noqa: BLE001 - a backend may raise anything, and that is what is asked here
        if is_out_of_memory(error):
            status, reason = Status.OOM, out_of_memory_reason(error, setting.budget_bytes)
        else:
            status, reason, log_tail = Status.ERROR, first_line(error), traceback.format_exc()
    return {
        "status": status,
        "reason": reason,
        "log_tail": log_tail,
        "spent_s": perf_counter() - start - compiling_s,
    }


def once(problem: Problem, backend: Backend, setting: Setting, budget: Budget) -> float:
    """What is measured of a case, as a program of the user's would do it: its inputs, the output's
    gradient, and one call.

    Returns how long compiling took.
    """
    device = setting.device
    tensors = make_tensors(problem, device, setting.seed)
    gradient = (
        torch.randn(output_shape(problem), device=device, dtype=TORCH_DTYPE[problem.dtype])
        if problem.backward
        else None
    )
    start = perf_counter()
    with budget.for_code() if backend.compiles else nullcontext():
        subject = make_subject(problem, backend, tensors, gradient)
    compiling_s = perf_counter() - start if backend.compiles else 0.0
    with subject.in_force():
        subject.run(subject.setup())
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return compiling_s
