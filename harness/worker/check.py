"""What is learnt of each case by itself before any is timed: whether it can run, whether it is
right, and what it needs of memory.
"""

import traceback
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from itertools import groupby
from time import perf_counter

from ...impls.backend import Backend
from ...impls.problem import Problem
from ..cases import Case
from ..measure.clock import Clock
from ..measure.correctness import Gate
from ..measure.memory_budget import address_space_bytes
from ..measure.peak_memory import peak, release, settle
from ..measure.prepared_call import Subject, Tensors, make_subject, make_tensors
from ..preflight import Outlook, outlook
from ..record import Status
from .attempt import Attempts, first_line
from .kernel import observed


class Judge:
    """Takes one problem after the other. `resident`: whether to ask for the kernel's view of the
    peak too (see memory.peak).
    """

    def __init__(self, attempts: Attempts, clock: Clock, *, resident: bool) -> None:
        self.attempts = attempts
        self.setting = attempts.setting
        self.say = attempts.say
        self.budget = attempts.budget
        self.clock = clock
        self.resident = resident

    def judge(self, cases: list[Case]) -> None:
        """Refuse, gate and memory for each case. The tensors of only one problem exist at a
        time.
        """
        for problem, same in groupby(cases, key=lambda case: case.problem):
            admitted = [(case, view) for case in same if (view := self._admitted(case))]
            self._judge_problem(problem, admitted)
            release(self.setting.device)
        settle()

    def _admitted(self, case: Case) -> Outlook | None:
        """Say what is known without running, and refuse what cannot run."""
        view = self.attempts.attempt(case, "refuse", partial(self._outlook, case))
        if view is None:
            return None
        self.say({"event": "facts", "case": case.id, "fields": view.fields})
        if view.status is not None:
            self.attempts.end(case, view.status, view.reason, "refuse")
            return None
        return view

    def _outlook(self, case: Case) -> Outlook:
        with self.budget.for_code():
            return outlook(case, self.setting.device, self.setting.budget_bytes, check_formula=True)

    def _judge_problem(self, problem: Problem, admitted: list[tuple[Case, Outlook]]) -> None:
        """All backends of a problem on the same inputs, against the same exact result."""
        tensors: Tensors | None = None
        while admitted and tensors is None:  # inputs that do not fit end one case after the other
            tensors = self.attempts.attempt(
                admitted[0][0],
                "prepare",
                partial(make_tensors, problem, self.setting.device, self.setting.seed),
            )
            admitted = admitted if tensors else admitted[1:]
        if tensors is None:
            return
        gate = self._gate(problem, tensors, [case for case, _ in admitted])
        if gate is None:
            return
        for case, view in admitted:
            assert view.backend is not None
            self.budget.tighten(gate.held_bytes)
            phase = "compile" if view.backend.compiles else "prepare"
            subject = self.attempts.attempt(
                case, phase, partial(self._subject, problem, view.backend, tensors, gate)
            )
            if (
                subject
                and self.attempts.attempt(
                    case, "gate", partial(self._passes_gate, case, subject, gate)
                )
                and "memory" in self.setting.measure
            ):
                self.attempts.attempt(case, "memory", partial(self._weigh, case, subject))
            del subject
            release(self.setting.device)

    def _subject(self, problem: Problem, backend: Backend, tensors: Tensors, gate: Gate) -> Subject:
        with self.budget.for_code(gate.held_bytes) if backend.compiles else nullcontext():
            return make_subject(problem, backend, tensors, gate.grad_output)

    def _gate(self, problem: Problem, tensors: Tensors, cases: list[Case]) -> Gate | None:
        """The judge of a problem. It is our own work: where it fails, no backend is to blame, and
        none can be judged.
        """
        self.say({"event": "running", "case": None, "phase": "gate"})
        self.budget.relax()
        before_bytes = address_space_bytes()
        try:
            gate = Gate(problem, *tensors, self.setting.seed)
            self.budget.forgive(before_bytes, gate.held_bytes)
            return gate
        except (RuntimeError, MemoryError) as error:
            reason = f"the exact result could not be computed: {first_line(error)}"
            for case in cases:
                self.attempts.end(
                    case,
                    Status.ERROR,
                    reason,
                    "gate",
                    log_tail=traceback.format_exc(),
                    poisoned=self.attempts.poisoned(error),
                )
            return None
        finally:
            self.budget.tighten()

    def _passes_gate(self, case: Case, subject: Subject, gate: Gate) -> bool:
        with subject.in_force():
            start = perf_counter()
            (output, gradients), kernel = observed(subject.result)
            self.clock.finish()
            first_call_ms = (perf_counter() - start) * 1e3
        self.budget.relax()
        verdict = gate.judge(output, gradients, subject.backend.exactness)
        self.budget.tighten(gate.held_bytes)
        errors = {"error_l2_ratio": verdict.error_l2_ratio, "error_ratio": verdict.error_ratio}
        fields = {**errors, "kernel": kernel, "first_call_ms": first_call_ms, **subject.setup_facts}
        self.say({"event": "facts", "case": case.id, "fields": fields})
        pinned = subject.backend.pinned_kernel
        if verdict.complaint:
            self.attempts.end(case, Status.INCORRECT, verdict.complaint, "gate")
        elif pinned and kernel != pinned:
            self.attempts.end(
                case,
                Status.ERROR,
                f"asked for the kernel {pinned}, but {kernel} ran; a fallback is no measurement",
                "gate",
            )
        else:
            return True
        return False

    def _weigh(self, case: Case, subject: Subject) -> None:
        """Exact peak bytes. Outside the budget: the gate has shown that the case fits, and the
        profiler needs room of its own.
        """
        self.budget.relax()
        with subject.in_force():
            found = peak(subject.setup, subject.run, self.setting.device, resident=self.resident)
        self.budget.tighten()
        self.say({"event": "facts", "case": case.id, "fields": asdict(found)})
