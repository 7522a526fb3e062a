"""Check each case before any is timed: can it run, is it correct, what memory does it need."""

import secrets
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from itertools import groupby
from time import perf_counter
from typing import Any

from torch import Tensor

from ...impls.backend import Backend
from ...impls.problem import Problem
from ..cases import Case
from ..measure.clock import Clock
from ..measure.correctness import WIDE_SCORE, CorrectnessCheck
from ..measure.input_values import InputValues
from ..measure.output_check import FROM_MEMORY, Fingerprint, improper
from ..measure.peak_memory import freeze_gc, peak, release
from ..measure.prepared_call import PreparedCall, prepare_call
from ..preflight import Preflight, preflight
from ..record import Status
from .exact_results import ExactResults, exact_results
from .kernel import observed
from .phases import PhaseRunner


class Checker:
    """Checks cases, one problem at a time.

    `resident`: whether to measure the kernel's view of the peak too (see measure/peak_memory.py).
    """

    def __init__(self, phases: PhaseRunner, clock: Clock, *, resident: bool) -> None:
        self.phases = phases
        self.config = phases.config
        self.say = phases.say
        self.budget = phases.budget
        self.clock = clock
        self.resident = resident

    def check(self, cases: list[Case]) -> None:
        """Preflight, correctness and memory; the tensors of only one problem exist at a time."""
        for problem, same in groupby(cases, key=lambda case: case.problem):
            admitted = [(case, view) for case in same if (view := self._admitted(case))]
            self._check_problem(problem, admitted)
            release(self.config.device)
        freeze_gc()

    def _admitted(self, case: Case) -> Preflight | None:
        """Say what is known without running; None if the case is refused."""
        view = self.phases.run(case, "refuse", partial(self._preflight, case))
        if view is None:
            return None
        self.say({"event": "facts", "case": case.id, "fields": view.fields})
        if view.status is not None:
            self.phases.end(case, view.status, view.reason, "refuse")
            return None
        return view

    def _preflight(self, case: Case) -> Preflight:
        with self.budget.for_code():
            return preflight(case, self.config.device, self.config.budget_bytes, check_formula=True)

    def _check_problem(self, problem: Problem, admitted: list[tuple[Case, Preflight]]) -> None:
        """All backends of a problem on the same inputs, against the same exact results."""
        make = partial(InputValues, problem, self.config.device, self.config.seed)
        values: InputValues | None = None
        while admitted and values is None:  # inputs that do not fit end one case after the other
            values = self.phases.run(admitted[0][0], "prepare", make)
            admitted = admitted if values else admitted[1:]
        if values is None:
            return
        exact = exact_results(self.phases, values, [case for case, _ in admitted])
        if exact is None:
            return
        for case, view in admitted:
            assert view.backend is not None
            self.phases.files[case.backend] = source_file(view.backend)
            self.budget.enforce(exact.held_bytes)
            phase = "compile" if view.backend.compiles else "prepare"
            prepare = partial(self._prepare, values, view.backend, exact)
            prepared = self.phases.run(case, phase, prepare)
            if prepared is not None:
                self._check_call(case, prepared, values, exact)
            del prepared  # nothing else holds its tensors
            self.budget.lift()
            values.restore()
            self.budget.enforce()
            release(self.config.device)

    def _check_call(
        self, case: Case, prepared: PreparedCall, values: InputValues, exact: ExactResults
    ) -> None:
        fingerprint = Fingerprint(case.problem, secrets.randbits(32))
        first = partial(self._passes, case, prepared, values, exact, fingerprint)
        if not self.phases.run(case, "gate", first):
            return
        measured = "memory" in self.config.measure
        again = partial(self._again, case, prepared, values, exact, fingerprint, measured)
        self.phases.run(case, "memory" if measured else "gate", again)

    def _prepare(self, values: InputValues, backend: Backend, exact: ExactResults) -> PreparedCall:
        held = exact.held_bytes
        with self.budget.for_code(held) if backend.compiles else nullcontext():
            return prepare_call(values.problem, backend, values.tensors, values.gradient)

    def _passes(
        self,
        case: Case,
        prepared: PreparedCall,
        values: InputValues,
        exact: ExactResults,
        fingerprint: Fingerprint,
    ) -> bool:
        with prepared.in_force():
            start = perf_counter()
            (output, gradients), kernel = observed(prepared.result)
            self.clock.finish()
            first_call_ms = (perf_counter() - start) * 1e3
        self.budget.lift()
        complaint = returned_wrongly(prepared, output, gradients, values)
        fields = {"kernel": kernel, "first_call_ms": first_call_ms, **prepared.setup_facts}
        if not complaint:
            result = exact.usual.check(output, gradients, prepared.backend.exactness)
            complaint = result.complaint
            if not complaint:
                measured = gradients if prepared.problem.backward else output
                fingerprint.expected[False] = fingerprint.take(measured)
            fields["error_l2_ratio"] = result.error_l2_ratio
            fields["error_ratio"] = result.error_ratio
        self.budget.enforce(exact.held_bytes)
        self.say({"event": "facts", "case": case.id, "fields": fields})
        pinned = prepared.backend.pinned_kernel
        if complaint:
            self.phases.end(case, Status.INCORRECT, complaint, "gate")
        elif pinned and kernel != pinned:
            reason = f"the kernel {pinned} was requested, but {kernel} ran; a fallback is an error"
            self.phases.end(case, Status.ERROR, reason, "gate")
        else:
            return True
        return False

    def _again(
        self,
        case: Case,
        prepared: PreparedCall,
        values: InputValues,
        exact: ExactResults,
        fingerprint: Fingerprint,
        measured: bool,
    ) -> None:
        """A call with other values of the inputs, whose exact peak bytes are `measured`.

        Without the budget: the first call has shown that the case fits, and the profiler needs
        memory too.
        """
        self.budget.lift()
        results: list[object] = []

        def run(ready: Tensor | None) -> object:
            result = prepared.run(ready)
            if not results:  # more than one would add to the memory of later calls
                results.append(result)
            return result

        wide = self._wide(prepared, values, exact)
        fields: dict[str, Any] = {}
        with prepared.in_force():
            if measured:
                device = self.config.device
                fields = asdict(peak(prepared.setup, run, device, resident=self.resident))
            else:
                run(prepared.setup())
                self.clock.finish()
        complaint = wide_complaint(prepared, results.pop(), values, wide, fingerprint)
        self.budget.enforce()
        self.say({"event": "facts", "case": case.id, "fields": fields})
        if complaint:
            self.phases.end(case, Status.INCORRECT, complaint, "memory" if measured else "gate")

    def _wide(
        self, prepared: PreparedCall, values: InputValues, exact: ExactResults
    ) -> CorrectnessCheck | None:
        """Give the inputs wide scores; None for a backend that need not be exact."""
        if prepared.backend.exactness != "exact" or exact.wide is None:
            return None
        values.widen()
        return exact.wide


def returned_wrongly(
    prepared: PreparedCall, output: Tensor, gradients: Sequence[Tensor], values: InputValues
) -> str:
    """What is wrong besides the numbers: what was returned, and what was written to."""
    if complaint := improper(prepared.problem, output, gradients, values.tensors):
        return complaint
    if changed := values.changed():
        return f"writes into its inputs ({changed}), which it shares with other backends"
    return ""


def wide_complaint(
    prepared: PreparedCall,
    result: Any,
    values: InputValues,
    wide: CorrectnessCheck | None,
    fingerprint: Fingerprint,
) -> str:
    """`result`: what PreparedCall.run gave, an output or gradients."""
    if wide is None:
        return ""
    output, gradients = (None, result) if prepared.problem.backward else (result, ())
    if complaint := improper(prepared.problem, output, gradients, values.tensors):
        return complaint
    complaint = wide.check(output, gradients).complaint
    if complaint and fingerprint.repeats(result, fingerprint.expected[False]):
        return FROM_MEMORY
    return f"with scores up to {WIDE_SCORE:g}: {complaint}" if complaint else ""


def source_file(backend: Backend) -> str | None:
    """The file of a backend's code, if it has one."""
    module = getattr(backend, "module", None)
    code = getattr(getattr(module, "function", None), "__code__", None)
    return getattr(module, "__file__", None) or (code.co_filename if code else None)
