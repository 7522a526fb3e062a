"""The phases of a group inside a worker: refuse, prepare, gate, memory, latency, utilization. Everything learnt is said at once.

What is said goes through `say(event)`, a JSON-ready dict with the key "event":
    running {case, phase}       what the worker is about to do, so that a fault has a name; case is null for our own work
    facts   {case, fields}      fields of the case's row
    ended   {case, status, reason, phase, log_tail, poisoned}   the case goes no further; poisoned: the process is spoilt
    warm    {case, stationary, graph_reason}   the warm-up is over; stationary: null where it had too few calls to tell
    samples {case, quantities, spent_s}   one block of one case: readings of each quantity, and what the machine did meanwhile
    seen    {case, window, tables, missing}   what the device's counters showed while the case ran, and why columns are missing
"""

import gc
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ..impls import load
from ..impls.backend import TORCH_DTYPE
from ..impls.problem import Problem
from .blocks import calls_per_block
from .budget import Budget, available_bytes, is_out_of_memory, out_of_memory_reason
from .case import Case
from .clock import Clock, Timer, clock_for
from .conditions import conditions_for
from .gate import Gate, output_shape
from .heap import WarmHeap
from .kernel import observed
from .memory import peak, release, settle
from .nvml import Device
from .record import Status
from .refuse import Outlook, outlook
from .stats import stationary
from .steady import Way
from .subject import Subject, Tensors, make_subject, make_tensors
from .window import Seen, dissect, look

WARM_UP_S = 0.3  # at least
WARM_AGAIN_S = 0.1  # at least, where this process has warmed the case up before: only its memory is new
MOST_WARM_UP_S = 5.0  # or the plan's time per case, where that is less
ROOM_SHARE = 0.9  # of the memory that is free: the members of a group hold their inputs side by side, and the heap what they freed

Say = Callable[[dict[str, Any]], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all cases of a run share."""

    device: torch.device
    seed: int
    budget_bytes: int
    measure: tuple[str, ...]
    warm_heap: bool
    most_warm_up_s: float
    watched: Device


class Member(NamedTuple):
    """A warm case that waits for its turns in the blocks."""

    subject: Subject
    run: Callable[[], object]
    timer: Timer
    calls: int
    call_ms: float


class Bench:
    """A worker's measuring table: judges cases one by one, then holds a group's members side by side for the blocks."""

    def __init__(self, setting: Setting, say: Say) -> None:
        self.setting = setting
        self.say = say
        self.clock: Clock = clock_for(setting.device)  # before the budget, which its buffers do not belong to
        self.budget = Budget(setting.budget_bytes, setting.device)
        self.room_bytes = 0
        self.heap = WarmHeap() if setting.warm_heap and setting.device.type == "cpu" else None
        if self.heap:
            self.heap.give_back()  # thresholds that do not move: from the first tensor on, large ones come and go whole
        self.conditions = conditions_for(setting.device)
        self.on = (setting.device, setting.watched)
        self.members: dict[str, Member] = {}
        self.warmed: set[str] = set()

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
        view = self._attempt(case, "refuse", partial(outlook, case, self.setting.device, self.setting.budget_bytes, check_formula=True))
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
            found = peak(subject.setup, subject.run, self.setting.device, resident=self.heap is not None)
        self.budget.tighten()
        self.say({"event": "facts", "case": case.id, "fields": asdict(found)})

    # ---- a group side by side -----------------------------------------------------------------------------------------------

    def open(self, cases: list[Case]) -> None:
        """Prepare all members on fresh inputs, shared by the backends of a problem, and call each until it is warm.

        That each member fits into the budget by itself has been shown; side by side they may use what the machine has.
        """
        if self.setting.device.type == "cpu":
            self.room_bytes = max(0, int(ROOM_SHARE * available_bytes(self.setting.device)) - self.setting.budget_bytes)
            self.budget.tighten(self.room_bytes)
        if self.heap:
            self.heap.keep()
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
            run = partial(subject.run, ready)
            run()  # what happens only once (plans, lazy modules, compilation) is not part of the warm-up
            self.clock.finish()
            steady, call_ms = self._warm_up(run, WARM_AGAIN_S if case.id in self.warmed else WARM_UP_S)
            timer = self.clock.timer(run, call_ms)
        self.warmed.add(case.id)
        self.say({"event": "warm", "case": case.id, "stationary": steady, "graph_reason": timer.graph_reason})
        return Member(subject, run, timer, calls_per_block(call_ms, self.clock.BLOCK_MS), call_ms)

    def _warm_up(self, run: Callable[[], object], least_s: float) -> tuple[bool | None, float]:
        """Call until the times have come to rest or the warm-up's time is over; whether they have, and how long a call takes now."""
        readings: list[float] = []
        start = latest = perf_counter()
        look = least_s
        while True:
            begun = latest
            run()
            self.clock.finish()
            latest = perf_counter()
            readings.append((latest - begun) * 1e3)
            spent = latest - start
            # Looks come at growing times too: thousands of short calls are not searched for a trend after each of them.
            if spent >= look:
                steady = stationary(readings)
                if steady or spent >= min(MOST_WARM_UP_S, max(least_s, self.setting.most_warm_up_s)):
                    return steady, median(readings[-5:])
                look = 1.25 * spent

    def block(self, cases: list[Case]) -> None:
        """One block: the named members in the given order, as many calls each as fill its share."""
        for case in cases:
            if case.id in self.members:
                self._attempt(case, "latency", partial(self._sample, case))

    def _sample(self, case: Case) -> None:
        subject, _, timer, calls, _ = self.members[case.id]
        with subject.in_force():
            self.conditions.before()
            samples = timer.sample(calls)
            readings = self.conditions.after()
        late = {} if samples.late_calls is None else {"late_calls": samples.late_calls}
        quantities = {
            "block_ms": samples.block_ms,
            "wall_block_ms": samples.wall_block_ms,
            "hot_block_ms": samples.hot_block_ms,
            "graph_block_ms": samples.graph_block_ms,
            "conditions": {"calls": calls, **late, **readings},
        }
        self.say({"event": "samples", "case": case.id, "quantities": quantities, "spent_s": samples.spent_s})

    def watch(self, case: Case, measure: tuple[str, ...], window_s: float, way: Way) -> None:
        """One window of a warm case under the device's counters."""
        if case.id in self.members:
            member = self.members[case.id]
            self._see(case, "utilization", member, partial(look, member.run, member.call_ms, window_s, measure, way, self.on))

    def dissect(self, cases: list[Case]) -> None:
        """What calls of each warm case launch."""
        for case in cases:
            if case.id in self.members:
                member = self.members[case.id]
                self._see(case, "kernels", member, partial(dissect, member.run, self.setting.measure, self.on))

    def _see(self, case: Case, phase: str, member: Member, take: Callable[[], Seen]) -> None:
        def seen() -> Seen:
            with member.subject.in_force():
                return take()

        found = self._attempt(case, phase, seen)
        if found:
            self.say({"event": "seen", "case": case.id, **found._asdict()})

    def close(self) -> None:
        """Hold no tensors between turns, and no memory of theirs."""
        self.members.clear()
        if self.heap:
            self.heap.give_back()
        release(self.setting.device)
        self.room_bytes = 0
        self.budget.tighten()

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
            self.budget.tighten(self.room_bytes)
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
