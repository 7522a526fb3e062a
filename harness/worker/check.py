"""Check a case before it is timed: can it run, is it correct, what memory does it need."""

import secrets
from contextlib import ExitStack
from functools import partial
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from ... import impls
from ...impls.discovery.loading import Backend
from ..cases.case import Case
from ..measure.clock import Clock, now_s
from ..measure.correctness import CorrectnessCheck, explained
from ..measure.error_limits import WIDE_SCORE, CheckResult, distance
from ..measure.input_values import InputValues
from ..measure.judge import FROM_MEMORY
from ..measure.kept_memory import kept_memory, mask_cost, memory_fields, too_small
from ..measure.output_check import WRITES, improper
from ..measure.peak_memory import Peak, peak, saved_bytes
from ..measure.prepared_call import CompileTime, PreparedCall, prepare_call
from ..process.child import CaseEnded
from ..rows.status import ERRORS, Status
from ..scenario.preflight import preflight
from .observe import observed
from .settings import Settings

COPIES = (
    "copies its inputs in `prepare`; wanted views, since the values of inputs change between calls"
)
POSITIONS = 512  # of a first result, by which it is known again
SAME_RATIO = {"fp32": 2.0**-16, "bf16": 2.0**-6, "fp16": 2.0**-9}
"""How far, in relative L2, two calls with the same values may be apart: sums in another order."""


class Checker:
    """One case. `draw` first, then `check`; `fields` are those of its row so far."""

    def __init__(self, case: Case, settings: Settings, clock: Clock) -> None:
        self.case, self.settings, self.clock = case, settings, clock
        self.device, self.budget = settings.device, settings.budget
        self.fields: dict[str, Any] = {}

    def draw(self) -> None:
        """Refuse the case, or make its inputs and the exact results that its own are compared with.

        Raises CaseEnded.
        """
        with self.budget.for_code():
            view = preflight(self.case, self.device, self.settings.budget_bytes)
        self.fields |= view.fields
        if view.backend is None:
            raise CaseEnded(view.status or Status.ERROR, view.reason, "refuse")
        self.backend: Backend = view.backend
        p = self.case.problem
        order = impls.input_order(self.case.backend, p)
        self.values = values = InputValues(p, self.device, self.settings.seed, order)
        with self.budget.for_our_work():
            self.exact = _exact(values)
            values.widen()
            self.wide_exact = _exact(values, wide=True)
            values.draw(self.settings.seed)

    def check(self) -> None:
        """Prepare, call, and compare; then the same with wide scores, whose memory is counted.

        Raises CaseEnded.
        """
        backend, compiling = self.backend, CompileTime()
        if backend.compiles_ahead:
            with compiling.timed(), self.budget.for_code():
                backend.compile_ahead(self.case.problem, self.device)
        kept = kept_memory(self.case.problem, self.device, compiles=backend.compiles)
        prepared = kept.of(self._prepare)
        compiling.add(prepared.setup_facts["compile_ms"])
        self.fields |= prepared.setup_facts | {"compile_ms": compiling.ms}
        with prepared.in_force():
            first = self._first_call(prepared)
        # The first call has shown that the case fits, and the profiler needs memory too.
        self.budget.lift()
        between = kept.read()
        found = self._second_call(prepared, first)
        if found is not None:
            by_onednn = self.case.problem.dtype != "fp32" or self.case.problem.backward
            self.fields |= memory_fields(found, between, self.device, by_onednn=by_onednn)
            if complaint := too_small(found):
                raise CaseEnded(Status.ERROR, complaint, "memory")

    def _prepare(self) -> PreparedCall:
        with ExitStack() as stack:
            if self.backend.compiles:
                stack.enter_context(self.budget.for_code())
            values = self.values
            return prepare_call(values.problem, self.backend, values.tensors, values.gradient)

    def _first_call(self, prepared: PreparedCall) -> Tensor:
        """Some of the output; its time is that of the call, and not of giving it a gradient."""
        values, exact, waiting_s = self.values, self.exact, 0.0

        def give_gradient() -> None:
            nonlocal waiting_s
            begun_s = now_s()
            with self.budget.for_our_work():
                exact.write_gradient(values.gradient)
            waiting_s += now_s() - begun_s

        begun_s = perf_counter()
        (output, gradients), kernel = observed(partial(prepared.result, give_gradient))
        self.clock.finish()
        first_call_ms = (perf_counter() - begun_s - waiting_s) * 1e3
        self.fields |= {
            "kernel": kernel.name,
            "kernel_generation": kernel.generation,
            "first_call_ms": first_call_ms,
        }
        complaint = improper(prepared.problem, output, gradients, values.tensors)
        if names := values.written():
            complaint = complaint or WRITES.format(names)
        if not complaint:
            with self.budget.for_our_work():
                found = exact.check(output, gradients, self.backend.exactness)
                complaint = found.complaint
                if complaint and self.backend.exactness == "exact":
                    complaint += explained(
                        prepared.problem, values.tensors, output.detach(), exact.seed
                    )
            self.fields |= errors_of(found)
        pinned = self.backend.pinned_kernel
        if complaint:
            raise CaseEnded(Status.INCORRECT, complaint, "gate")
        if pinned and not kernel.is_pinned(pinned):
            reason = f"the kernel {pinned} was requested, but {kernel} ran; a fallback is an error"
            raise CaseEnded(Status.ERROR, reason, "gate")
        values.draw_gradient()
        return some_of(output)

    def _second_call(self, prepared: PreparedCall, first: Tensor) -> Peak | None:
        """With wide scores if the backend is exact; its exact peak bytes if they are measured."""
        problem, values, exact = prepared.problem, self.values, self.backend.exactness == "exact"
        measured = "memory" in self.settings.measure
        if exact:
            values.widen()
            self.wide_exact.write_gradient(values.gradient)
        results: list[Any] = []

        def run(ready: Tensor | None) -> object:
            result = prepared.run(ready)
            if not results:  # more than one would add to the memory of later calls
                results.append(result)
            return result

        found: Peak | None = None
        with prepared.in_force():
            if measured:
                resident = self.settings.warm_heap and self.device.type == "cpu"
                found = peak(prepared.setup, run, self.device, resident=resident)
                if problem.backward:
                    self.fields["saved_bytes"] = saved_bytes(prepared.call, self.device)
            else:
                run(prepared.setup())
                self.clock.finish()
        if measured:
            self.fields |= mask_cost(problem, self.backend, self.device, self.clock)
        result, phase = results.pop(), "memory" if measured else "gate"
        if exact and (complaint := self._wide_complaint(result, first)):
            copies = complaint == FROM_MEMORY and self._follows_a_new_prepare()
            reason = COPIES if copies else complaint
            raise CaseEnded(Status.ERROR if copies else Status.INCORRECT, reason, phase)
        return found

    def _wide_complaint(self, result: Any, first: Tensor) -> str:
        problem, tensors = self.case.problem, self.values.tensors
        output, gradients = (None, result) if problem.backward else (result, ())
        if complaint := improper(problem, output, gradients, tensors):
            return complaint
        complaint = self.wide_exact.check(output, gradients).complaint
        if not complaint:
            return ""
        if output is not None and distance(some_of(output), first) <= SAME_RATIO[problem.dtype]:
            return FROM_MEMORY
        return f"with scores up to {WIDE_SCORE:g}: {complaint}"

    def _follows_a_new_prepare(self) -> bool:
        """Whether a call that is prepared on the present values is right for them."""
        again = self._prepare()
        with again.in_force():
            output, _ = again.result()
        return not self.wide_exact.check(output, ()).complaint


def _exact(values: InputValues, *, wide: bool = False) -> CorrectnessCheck:
    seed = secrets.randbits(62)
    return CorrectnessCheck(values.problem, *values.tensors, seed, few_rows=wide, wide=wide)


def some_of(output: Tensor) -> Tensor:
    """Elements at the same places of each output of a shape, in float64 on the host."""
    flat = output.detach().flatten()
    return flat[:: max(1, len(flat) // POSITIONS)].double().cpu()


def errors_of(found: CheckResult) -> dict[str, float | None]:
    """Those that are numbers."""
    named = {name: getattr(found, name) for name in ERRORS}
    return {
        name: one if one is not None and torch.tensor(one).isfinite() else None
        for name, one in named.items()
    }
