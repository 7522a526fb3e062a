"""The phases of a group inside a worker: refuse, prepare, gate, memory, latency, utilization.
Everything learnt is said at once.

What is said goes through `say(event)`, a JSON-ready dict with the key "event":
    running {case, phase}       what the worker is about to do, so that a fault has a name; case is null for our own work
    facts   {case, fields}      fields of the case's row
    ended   {case, status, reason, phase, log_tail, poisoned}   the case goes no further; poisoned: the process is spoilt
    warm    {case, stationary, graph_reason}   the warm-up is over; stationary: null where it had too few calls to tell
    samples {case, quantities, spent_s}   one block of one case: readings of each quantity, and what the machine did meanwhile
    seen    {case, window, tables, missing}   what the device's counters showed while the case ran, and why columns are missing
"""

from collections.abc import Callable
from functools import partial
from itertools import groupby
from statistics import median
from time import perf_counter, time
from typing import NamedTuple

import torch
from torch import Tensor

from ...impls import load
from ...impls.backend import TORCH_DTYPE
from ...impls.problem import Problem
from ..cases import Case
from ..measure.clock import Clock, Timer, clock_for
from ..measure.conditions import conditions_for
from ..measure.correctness import output_shape
from ..measure.memory_budget import available_bytes
from ..measure.peak_memory import release
from ..measure.prepared_call import Subject, Tensors, make_subject, make_tensors
from ..measure.steady_loop import Way
from ..measure.warm_heap import WarmHeap
from ..run.sampling import calls_per_block
from ..stats import stationary
from .attempt import Attempts, Say, Setting
from .check import Judge
from .window import Seen, dissect, look

WARM_UP_S = 0.3  # at least
WARM_AGAIN_S = (
    0.1  # at least, where this process has warmed the case up before: only its memory is new
)
MOST_WARM_UP_S = 5.0  # or the plan's time per case, where that is less
# of the memory that is free: the members of a group hold their inputs side by side, and the heap
# what they freed
ROOM_SHARE = 0.9


class Member(NamedTuple):
    """A warm case that waits for its turns in the blocks."""

    subject: Subject
    run: Callable[[], object]
    timer: Timer
    calls: int
    call_ms: float


class Bench:
    """A worker's measuring table: judges cases one by one, then holds a group's members side by
    side for the blocks.
    """

    def __init__(self, setting: Setting, say: Say) -> None:
        self.setting = setting
        self.say = say
        self.members: dict[str, Member] = {}
        self.warmed: set[str] = set()
        self.clock: Clock = clock_for(
            setting.device
        )  # before the budget, which its buffers do not belong to
        self.attempts = Attempts(
            setting, say, forget=lambda case_id: self.members.pop(case_id, None)
        )
        self.heap = WarmHeap() if setting.warm_heap and setting.device.type == "cpu" else None
        if self.heap:
            # thresholds that do not move: from the first tensor on, large ones come and go whole
            self.heap.give_back()
        self.conditions = conditions_for(setting.device)
        self.on = (setting.device, setting.watched)
        self._judge = Judge(self.attempts, self.clock, resident=self.heap is not None)

    def judge(self, cases: list[Case]) -> None:
        """Refuse, gate and memory for each case."""
        self._judge.judge(cases)

    def open(self, cases: list[Case]) -> None:
        """Prepare all members on fresh inputs, shared by the backends of a problem, and call each
        until it is warm.

        That each member fits into the budget by itself has been shown; side by side they may use
        what the machine has.
        """
        if self.setting.device.type == "cpu":
            room_bytes = max(
                0,
                int(ROOM_SHARE * available_bytes(self.setting.device)) - self.setting.budget_bytes,
            )
            self.attempts.make_room(room_bytes)
        if self.heap:
            self.heap.keep()
        for problem, same in groupby(cases, key=lambda case: case.problem):
            made: tuple[Tensors, Tensor | None] | None = None
            for case in same:
                made = made or self.attempts.attempt(
                    case, "prepare", partial(self._tensors_with_gradient, problem)
                )
                subject = self._subject(case, *made) if made else None
                if subject and (
                    member := self.attempts.attempt(
                        case, "latency", partial(self._warm, case, subject)
                    )
                ):
                    self.members[case.id] = member
                del subject  # one that failed has no owner left

    def _subject(self, case: Case, tensors: Tensors, gradient: Tensor | None) -> Subject | None:
        backend = self.attempts.attempt(case, "latency", partial(load, case.backend))
        if backend is None:
            return None
        phase = "compile" if backend.compiles else "latency"
        return self.attempts.attempt(
            case, phase, partial(make_subject, case.problem, backend, tensors, gradient)
        )

    def _warm(self, case: Case, subject: Subject) -> Member:
        with subject.in_force():
            ready = subject.setup()
            run = partial(subject.run, ready)
            # what happens only once (plans, lazy modules, compilation) is not part of the warm-up
            run()
            self.clock.finish()
            steady, call_ms = self._warm_up(
                run, WARM_AGAIN_S if case.id in self.warmed else WARM_UP_S
            )
            timer = self.clock.timer(run, call_ms)
        self.warmed.add(case.id)
        self.say(
            {
                "event": "warm",
                "case": case.id,
                "stationary": steady,
                "graph_reason": timer.graph_reason,
            }
        )
        return Member(subject, run, timer, calls_per_block(call_ms, self.clock.BLOCK_MS), call_ms)

    def _warm_up(self, run: Callable[[], object], least_s: float) -> tuple[bool | None, float]:
        """Call until the times have come to rest or the warm-up's time is over; whether they have,
        and how long a call takes now.
        """
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
            # Looks come at growing times too: thousands of short calls are not searched for a trend
            # after each of them.
            if spent >= look:
                steady = stationary(readings)
                if steady or spent >= min(
                    MOST_WARM_UP_S, max(least_s, self.setting.most_warm_up_s)
                ):
                    return steady, median(readings[-5:])
                look = 1.25 * spent

    def block(self, cases: list[Case]) -> None:
        """One block: the named members in the given order, as many calls each as fill its share."""
        for case in cases:
            if case.id in self.members:
                self.attempts.attempt(case, "latency", partial(self._sample, case))

    def _sample(self, case: Case) -> None:
        subject, _, timer, calls, _ = self.members[case.id]
        started_unix_s = time()
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
            "conditions": {"calls": calls, "started_unix_s": started_unix_s, **late, **readings},
        }
        self.say(
            {
                "event": "samples",
                "case": case.id,
                "quantities": quantities,
                "spent_s": samples.spent_s,
            }
        )

    def watch(self, case: Case, measure: tuple[str, ...], window_s: float, way: Way) -> None:
        """One window of a warm case under the device's counters."""
        if case.id in self.members:
            member = self.members[case.id]
            self._see(
                case,
                "utilization",
                member,
                partial(look, member.run, member.call_ms, window_s, measure, way, self.on),
            )

    def dissect(self, cases: list[Case]) -> None:
        """What calls of each warm case launch."""
        for case in cases:
            if case.id in self.members:
                member = self.members[case.id]
                self._see(
                    case,
                    "kernels",
                    member,
                    partial(dissect, member.run, self.setting.measure, self.on),
                )

    def _see(self, case: Case, phase: str, member: Member, take: Callable[[], Seen]) -> None:
        def seen() -> Seen:
            with member.subject.in_force():
                return take()

        found = self.attempts.attempt(case, phase, seen)
        if found:
            self.say({"event": "seen", "case": case.id, **found._asdict()})

    def close(self) -> None:
        """Hold no tensors between turns, and no memory of theirs."""
        self.members.clear()
        if self.heap:
            self.heap.give_back()
        release(self.setting.device)
        self.attempts.make_room(0)

    def _tensors_with_gradient(self, problem: Problem) -> tuple[Tensors, Tensor | None]:
        device, dtype = self.setting.device, TORCH_DTYPE[problem.dtype]
        tensors = make_tensors(problem, device, self.setting.seed)
        return tensors, (
            torch.randn(output_shape(problem), device=device, dtype=dtype)
            if problem.backward
            else None
        )
