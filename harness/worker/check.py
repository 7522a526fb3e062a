"""Check each case before any is timed: can it run, is it correct, what memory does it need."""

from contextlib import nullcontext
from functools import partial
from itertools import groupby
from time import perf_counter

from ...impls.backend import Backend
from ...impls.problem import Problem
from ..cases import Case
from ..errors import first_line
from ..measure.clock import Clock
from ..measure.correctness import CorrectnessCheck
from ..measure.kept_memory import KeptMemory, kept_memory, memory_fields, too_small
from ..measure.memory_budget import address_space_bytes
from ..measure.peak_memory import freeze_gc, peak, release
from ..measure.prepared_call import PreparedCall, Tensors, make_tensors, prepare_call
from ..preflight import Preflight, preflight
from ..record import Status
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
        """All backends of a problem on the same inputs, against the same exact result."""
        make = partial(make_tensors, problem, self.config.device, self.config.seed)
        tensors: Tensors | None = None
        while admitted and tensors is None:  # inputs that do not fit end one case after the other
            tensors = self.phases.run(admitted[0][0], "prepare", make)
            admitted = admitted if tensors else admitted[1:]
        if tensors is None:
            return
        correctness = self._correctness(problem, tensors, [case for case, _ in admitted])
        if correctness is None:
            return
        for case, view in admitted:
            assert view.backend is not None
            self.budget.enforce(correctness.held_bytes)
            phase = "compile" if view.backend.compiles else "prepare"
            device = self.config.device
            kept = kept_memory(problem, device, compiles=view.backend.compiles)
            prepare = partial(self._prepare, problem, view.backend, tensors, correctness)
            prepared = self.phases.run(case, phase, partial(kept.of, prepare))
            if prepared is not None:
                self._check_call(case, prepared, correctness, kept)
            del prepared  # nothing else holds its tensors
            release(self.config.device)

    def _check_call(
        self, case: Case, prepared: PreparedCall, correctness: CorrectnessCheck, kept: KeptMemory
    ) -> None:
        passes = partial(self._passes, case, prepared, correctness)
        if self.phases.run(case, "gate", passes) and "memory" in self.config.measure:
            self.phases.run(case, "memory", partial(self._measure_peak, case, prepared, kept))

    def _prepare(
        self,
        problem: Problem,
        backend: Backend,
        tensors: Tensors,
        correctness: CorrectnessCheck,
    ) -> PreparedCall:
        held = correctness.held_bytes
        with self.budget.for_code(held) if backend.compiles else nullcontext():
            return prepare_call(problem, backend, tensors, correctness.grad_output)

    def _correctness(
        self, problem: Problem, tensors: Tensors, cases: list[Case]
    ) -> CorrectnessCheck | None:
        """The exact result; if our own work fails here, no backend can be checked."""
        self.say({"event": "running", "case": None, "phase": "gate"})
        self.budget.lift()
        before_bytes = address_space_bytes()
        try:
            correctness = CorrectnessCheck(problem, *tensors, self.config.seed)
            self.budget.exclude_fragmentation(before_bytes, correctness.held_bytes)
            return correctness
        except (RuntimeError, MemoryError) as error:
            reason = f"the exact result could not be computed: {first_line(error)}"
            for case in cases:
                self.phases.end_with_error(case, error, reason, "gate")
            return None
        finally:
            self.budget.enforce()

    def _passes(self, case: Case, prepared: PreparedCall, correctness: CorrectnessCheck) -> bool:
        with prepared.in_force():
            start = perf_counter()
            (output, gradients), (kernel, generation) = observed(prepared.result)
            self.clock.finish()
            first_call_ms = (perf_counter() - start) * 1e3
        self.budget.lift()
        result = correctness.check(output, gradients, prepared.backend.exactness)
        self.budget.enforce(correctness.held_bytes)
        errors = {"error_l2_ratio": result.error_l2_ratio, "error_ratio": result.error_ratio}
        call = {"kernel": kernel, "kernel_generation": generation, "first_call_ms": first_call_ms}
        self.say(
            {"event": "facts", "case": case.id, "fields": errors | call | prepared.setup_facts}
        )
        pinned = prepared.backend.pinned_kernel
        if result.complaint:
            self.phases.end(case, Status.INCORRECT, result.complaint, "gate")
        elif pinned and kernel != pinned:
            reason = f"the kernel {pinned} was requested, but {kernel} ran; a fallback is an error"
            self.phases.end(case, Status.ERROR, reason, "gate")
        else:
            return True
        return False

    def _measure_peak(self, case: Case, prepared: PreparedCall, kept: KeptMemory) -> None:
        """Exact peak bytes, without the budget.

        The correctness check has shown that the case fits, and the profiler needs memory too.
        """
        self.budget.lift()
        between = kept.read()
        with prepared.in_force():
            found = peak(prepared.setup, prepared.run, self.config.device, resident=self.resident)
        self.budget.enforce()
        fields = memory_fields(found, between, self.config.device)
        self.say({"event": "facts", "case": case.id, "fields": fields})
        if complaint := too_small(found):
            self.phases.end(case, Status.ERROR, complaint, "memory")
