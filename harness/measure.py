"""The phases of a group inside a worker: refuse, prepare, gate, memory, latency. Everything learnt is said at once.

What is said goes through `say(event)`, a JSON-ready dict with the key "event":
    running {case, phase}       what the worker is about to do, so that a fault has a name; case is null for our own work
    facts   {case, fields}      fields of the case's row
    ended   {case, status, reason, phase, log_tail, poisoned}   the case goes no further; poisoned: the process is spoilt
    samples {case, block_ms, wall_ms}   one block of one case
"""

import gc
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ..impls import load
from ..impls.backend import TORCH_DTYPE
from ..impls.problem import Problem
from .blocks import calls_per_block
from .case import Case
from .clock import Clock, clock_for
from .gate import Gate, output_shape
from .kernel import observed
from .memory import Budget, is_out_of_memory, out_of_memory_reason, peak_bytes, release, settle
from .record import Status
from .refuse import Outlook, outlook
from .subject import Subject, Tensors, make_subject, make_tensors

WARM_UP_S = 0.2

Say = Callable[[dict[str, Any]], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all cases of a run share."""

    device: torch.device
    seed: int
    budget_bytes: int
    measure: tuple[str, ...]


class Member(NamedTuple):
    """A warm case that waits for its turns in the blocks."""

    subject: Subject
    ready: Tensor | None
    calls: int


class Bench:
    """A worker's measuring table: judges cases one by one, then holds a group's members side by side for the blocks."""

    def __init__(self, setting: Setting, say: Say) -> None:
        self.setting = setting
        self.say = say
        self.clock: Clock = clock_for(setting.device)  # before the budget, which its buffers do not belong to
        self.budget = Budget(setting.budget_bytes, setting.device)
        self.members: dict[str, Member] = {}

    # ---- one case at a time -------------------------------------------------------------------------------------------------

    def judge(self, cases: list[Case]) -> None:
        """Refuse, gate and memory for each case. The tensors of only one problem exist at a time."""
        for problem, same in groupby(cases, key=lambda case: case.problem):
            admitted = [(case, view) for case in same if (view := self._admitted(case))]
            self._judge_problem(problem, admitted)
            release(self.setting.device)
        settle()

    def _admitted(self, case: Case) -> Outlook | None:
        """Say what is known without running, and refuse what cannot run."""
        view = self._attempt(case, "refuse", partial(outlook, case, self.setting.device, self.setting.budget_bytes))
        if view is None:
            return None
        self.say({"event": "facts", "case": case.id, "fields": view.fields})
        if view.status is not None:
            self._end(case, view.status, view.reason, "refuse")
            return None
        return view

    def _judge_problem(self, problem: Problem, admitted: list[tuple[Case, Outlook]]) -> None:
        """All backends of a problem on the same inputs, against the same exact result."""
        tensors: Tensors | None = None
        while admitted and tensors is None:  # inputs that do not fit end one case after the other
            tensors = self._attempt(admitted[0][0], "prepare", partial(self._tensors, problem))
            admitted = admitted if tensors else admitted[1:]
        if tensors is None:
            return
        gate = self._gate(problem, tensors, [case for case, _ in admitted])
        if gate is None:
            return
        for case, view in admitted:
            assert view.backend is not None
            self.budget.tighten(gate.held_bytes)
            prepare = partial(make_subject, problem, view.backend, tensors, gate.grad_output)
            subject = self._attempt(case, "prepare", prepare)
            if (
                subject
                and self._attempt(case, "gate", partial(self._passes_gate, case, subject, gate))
                and "memory" in self.setting.measure
            ):
                self._attempt(case, "memory", partial(self._weigh, case, subject))
            del subject
            release(self.setting.device)

    def _gate(self, problem: Problem, tensors: Tensors, cases: list[Case]) -> Gate | None:
        """The judge of a problem. It is our own work: where it fails, no backend is to blame, and none can be judged."""
        self.say({"event": "running", "case": None, "phase": "gate"})
        self.budget.relax()
        try:
            return Gate(problem, *tensors, self.setting.seed)
        except (RuntimeError, MemoryError) as error:
            reason = f"the exact result could not be computed: {first_line(error)}"
            for case in cases:
                self._end(case, Status.ERROR, reason, "gate", log_tail=traceback.format_exc(), poisoned=self._poisoned(error))
            return None
        finally:
            self.budget.tighten()

    def _passes_gate(self, case: Case, subject: Subject, gate: Gate) -> bool:
        with subject.in_force():
            (output, gradients), kernel = observed(subject.result)
            self.clock.finish()
        self.budget.relax()
        verdict = gate.judge(output, gradients)
        self.budget.tighten(gate.held_bytes)
        fields = {"error_l2_ratio": verdict.error_l2_ratio, "error_ratio": verdict.error_ratio, "kernel": kernel}
        self.say({"event": "facts", "case": case.id, "fields": fields})
        pinned = subject.backend.variant
        if verdict.complaint:
            self._end(case, Status.INCORRECT, verdict.complaint, "gate")
        elif pinned and kernel != pinned:
            self._end(case, Status.ERROR, f"asked for the kernel {pinned}, but {kernel} ran; a fallback is no measurement", "gate")
        else:
            return True
        return False

    def _weigh(self, case: Case, subject: Subject) -> None:
        """Exact peak bytes. Outside the budget: the gate has shown that the case fits, and the profiler needs room of its own."""
        self.budget.relax()
        with subject.in_force():
            peak, source = peak_bytes(subject.setup, subject.run, self.setting.device)
        self.budget.tighten()
        self.say({"event": "facts", "case": case.id, "fields": {"peak_bytes": peak, "peak_source": source}})

    # ---- a group side by side -----------------------------------------------------------------------------------------------

    def open(self, cases: list[Case]) -> None:
        """Prepare all members on fresh inputs, shared by the backends of a problem, and call each until it is warm."""
        for problem, same in groupby(cases, key=lambda case: case.problem):
            made: tuple[Tensors, Tensor | None] | None = None
            for case in same:
                made = made or self._attempt(case, "prepare", partial(self._tensors_with_gradient, problem))
                if made and (member := self._attempt(case, "latency", partial(self._warm, case, *made))):
                    self.members[case.id] = member

    def _warm(self, case: Case, tensors: Tensors, gradient: Tensor | None) -> Member:
        subject = make_subject(case.problem, load(case.backend), tensors, gradient)
        with subject.in_force():
            ready = subject.setup()
            subject.run(ready)  # what happens only once (plans, lazy modules, compilation) is not part of the warm-up
            self.clock.finish()
            start = latest = perf_counter()
            while True:
                begun = latest
                subject.run(ready)
                self.clock.finish()
                latest = perf_counter()
                if latest - start >= WARM_UP_S:
                    return Member(subject, ready, calls_per_block((latest - begun) * 1e3, self.clock.BLOCK_MS))

    def block(self, cases: list[Case]) -> None:
        """One block: the named members in the given order, as many calls each as fill its share."""
        for case in cases:
            if case.id in self.members:
                self._attempt(case, "latency", partial(self._sample, case))

    def _sample(self, case: Case) -> None:
        subject, ready, calls = self.members[case.id]
        with subject.in_force():
            samples = self.clock.sample(partial(subject.run, ready), calls)
        self.say({"event": "samples", "case": case.id, "block_ms": samples.block_ms, "wall_ms": samples.wall_ms})

    def close(self) -> None:
        """Hold no tensors between turns."""
        self.members.clear()
        release(self.setting.device)

    # ---- shared -------------------------------------------------------------------------------------------------------------

    def _tensors(self, problem: Problem) -> Tensors:
        return make_tensors(problem, self.setting.device, self.setting.seed)

    def _tensors_with_gradient(self, problem: Problem) -> tuple[Tensors, Tensor | None]:
        tensors, device, dtype = self._tensors(problem), self.setting.device, TORCH_DTYPE[problem.dtype]
        return tensors, torch.randn(output_shape(problem), device=device, dtype=dtype) if problem.backward else None

    def _attempt(self, case: Case, phase: str, work: Callable[[], T]) -> T | None:
        """The one place that catches everything, round one phase of one case; None after the case has been ended."""
        self.say({"event": "running", "case": case.id, "phase": phase})
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - a backend may raise anything, and the other cases must go on
            self.budget.tighten()
            self.members.pop(case.id, None)
            if is_out_of_memory(error):
                self._end(case, Status.OOM, out_of_memory_reason(error, self.setting.budget_bytes), phase)
            else:
                poisoned = self._poisoned(error)
                self._end(case, Status.ERROR, first_line(error), phase, log_tail=traceback.format_exc(), poisoned=poisoned)
        gc.collect()  # the traceback held the backend's tensors
        release(self.setting.device)
        return None

    def _poisoned(self, error: Exception) -> bool:
        """Whether the process is spoilt for good: after an illegal address or a device assert every CUDA call fails."""
        if self.setting.device.type != "cuda":
            return False
        try:
            torch.cuda.synchronize(self.setting.device)
        except RuntimeError as after:
            return not is_out_of_memory(after)
        return "CUDA error" in str(error) and not is_out_of_memory(error)

    def _end(self, case: Case, status: Status, reason: str, phase: str, log_tail: str | None = None, *, poisoned: bool = False) -> None:
        event = {"event": "ended", "case": case.id, "status": status, "reason": reason, "phase": phase}
        self.say({**event, "log_tail": log_tail, "poisoned": poisoned})


def first_line(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0][:500]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
