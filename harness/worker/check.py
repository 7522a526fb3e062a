"""Check each case before any is timed: can it run, is it correct, what memory does it need."""

import secrets
from contextlib import nullcontext
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from torch import Tensor

from ...impls.backend import Backend
from ...impls.problem import Problem
from ..cases.case import Case
from ..measure.input_values import InputValues, writes_to
from ..measure.kept_memory import KeptMemory, kept_memory, memory_fields, too_small
from ..measure.mask_cost import mask_cost
from ..measure.output_check import Fingerprint, improper
from ..measure.peak_memory import Peak, freeze_gc, peak, release, saved_bytes
from ..measure.prepared_call import PreparedCall, prepare_call
from ..measure.stopwatch import Stopwatch
from ..rows.record import Status
from ..scenario.preflight import Preflight, preflight
from .judged_call import Judging
from .kernel import observed
from .shared_inputs import by_inputs, exact_result, made_inputs


class Checker:
    """Checks cases, one problem at a time.

    `resident`: whether to measure the kernel's view of the peak too (see measure/peak_memory.py).
    """

    def __init__(self, judging: Judging, *, resident: bool) -> None:
        self.judging, self.judge = judging, judging.judge
        self.phases = phases = judging.phases
        self.config = phases.config
        self.say = phases.say
        self.budget = phases.budget
        self.clock = judging.clock
        self.resident = resident
        self.fingerprints: dict[str, Fingerprint] = {}  # by case, of outputs that are correct

    def check(self, cases: list[Case]) -> None:
        """Preflight, correctness and memory; the tensors of only one problem exist at a time."""
        for (problem, order), same in by_inputs(cases).items():
            admitted = [(case, view) for case in same if (view := self._admitted(case))]
            self._check_problem(problem, order, admitted)
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
            return preflight(case, self.config.device, self.config.budget_bytes)

    def _check_problem(
        self, problem: Problem, order: str, admitted: list[tuple[Case, Preflight]]
    ) -> None:
        """All backends of a problem on the same inputs, against the same exact results."""
        views = dict(admitted)
        values, cases = made_inputs(self.phases, problem, order, list(views))
        if values is None:
            return
        if exact_result(self.phases, self.judge, values, cases, "first") is None:
            return
        for case in cases:
            backend = views[case].backend
            assert backend is not None
            compiling = self.phases.compiled_ahead(case, backend)
            if compiling is None:
                continue
            phase = "compile" if backend.compiles else "prepare"
            kept = kept_memory(problem, self.config.device, compiles=backend.compiles)
            prepare = partial(self._prepare, values, backend)
            prepared = self.phases.run(case, phase, partial(kept.of, prepare))
            if prepared is not None:
                compiling.add(prepared.setup_facts["compile_ms"])
                prepared.setup_facts["compile_ms"] = compiling.ms
                exactness = backend.exactness
                fingerprint = Fingerprint(
                    problem, secrets.randbits(32), is_exact=exactness == "exact"
                )
                checked = CheckedCall(case, prepared, values, kept, fingerprint)
                self._check_call(checked)
                del checked
            del prepared  # nothing else holds its tensors
            self.budget.lift()
            values.restore()
            self.budget.enforce()
            release(self.config.device)

    def _check_call(self, checked: "CheckedCall") -> None:
        if not self.phases.run(checked.case, "gate", partial(self._first_call, checked)):
            return
        measured = "memory" in self.config.measure
        phase = "memory" if measured else "gate"
        again = partial(self._second_call, checked, phase, measured=measured)
        self.phases.run(checked.case, phase, again)

    def _prepare(self, values: InputValues, backend: Backend) -> PreparedCall:
        with self.budget.for_code() if backend.compiles else nullcontext():
            return prepare_call(values.problem, backend, values.tensors, values.gradient)

    def _first_call(self, checked: "CheckedCall") -> bool:
        case, prepared, values = checked.case, checked.prepared, checked.values
        waiting = Stopwatch()
        ask = partial(self.judging.use_gradient, values, "first", waiting)
        with prepared.in_force():
            start = perf_counter()
            (output, gradients), (kernel, generation) = observed(partial(prepared.result, ask))
            self.clock.finish()
            first_call_ms = (perf_counter() - start - waiting.total_s) * 1e3
        found = {"kernel": kernel, "kernel_generation": generation, "first_call_ms": first_call_ms}
        self.say({"event": "facts", "case": case.id, "fields": found | prepared.setup_facts})
        changed = values.changed()
        complaint = improper(prepared.problem, output, gradients, values.tensors)
        if changed and not complaint:
            complaint = writes_to(changed)
        if not complaint:
            exactness, results = prepared.backend.exactness, (output, *gradients)
            complaint = self.judge.complaint(case, exactness, "first", results)
        pinned = prepared.backend.pinned_kernel
        if complaint:
            self.phases.end(case, Status.INCORRECT, complaint, "gate")
        elif pinned and kernel != pinned:
            reason = f"the kernel {pinned} was requested, but {kernel} ran; a fallback is an error"
            self.phases.end(case, Status.ERROR, reason, "gate")
        else:
            timed = gradients if prepared.problem.backward else output
            checked.fingerprint.expected[False] = checked.fingerprint.take(timed)
            return True
        return False

    def _second_call(self, checked: "CheckedCall", phase: str, *, measured: bool) -> None:
        """A call with other values of the inputs, whose exact peak bytes are `measured`.

        Without the budget: the first call has shown that the case fits, and the profiler needs
        memory too.
        """
        self.budget.lift()
        case, prepared, device = checked.case, checked.prepared, self.config.device
        between = checked.kept.read()
        results: list[object] = []

        def run(ready: Tensor | None) -> object:
            result = prepared.run(ready)
            if not results:  # more than one would add to the memory of later calls
                results.append(result)
            return result

        wide = prepared.backend.exactness == "exact"
        if wide:
            checked.values.widen()
            if checked.values.gradient is not None:
                gradient = checked.values.gradient.data
                self.judge.write_gradient(case.problem, "wide", gradient)
        found: Peak | None = None
        of_mask: dict[str, float | None] = {}
        with prepared.in_force():
            saved: int | None = None
            if measured:
                found = peak(prepared.setup, run, device, resident=self.resident)
                if case.problem.backward:
                    saved = saved_bytes(prepared.call, device)
            else:
                run(prepared.setup())
                self.clock.finish()
        if measured:
            of_mask = mask_cost(case.problem, prepared.backend, device, self.clock)
        complaint = self._wide_complaint(checked, results.pop()) if wide else ""
        self.budget.enforce()
        if found:
            by_onednn = case.problem.dtype != "fp32" or case.problem.backward
            fields = memory_fields(found, between, device, by_onednn=by_onednn)
            fields |= {"saved_bytes": saved} | of_mask
            self.say({"event": "facts", "case": case.id, "fields": fields})
        if complaint:
            self.phases.end(case, Status.INCORRECT, complaint, phase)
        elif found and (complaint := too_small(found)):
            self.phases.end(case, Status.ERROR, complaint, phase)
        elif not case.problem.backward:
            self.fingerprints[case.id] = checked.fingerprint

    def _wide_complaint(self, checked: "CheckedCall", result: Any) -> str:
        """What is wrong with a result of wide scores, an output or gradients."""
        problem, tensors = checked.prepared.problem, checked.values.tensors
        output, gradients = (None, result) if problem.backward else (result, ())
        if complaint := improper(problem, output, gradients, tensors):
            return complaint
        results = result if problem.backward else (result,)
        return self.judge.complaint(checked.case, "exact", "wide", results)


class CheckedCall(NamedTuple):
    """A prepared call and what it is compared with. `fingerprint`: of its first result."""

    case: Case
    prepared: PreparedCall
    values: InputValues
    kept: KeptMemory
    fingerprint: Fingerprint
