"""Measure a group inside a worker: refuse, prepare, gate, memory, latency, utilization.

Everything is reported at once as an event, a JSON-ready dict with the key "event":

    running {case, phase}
        what the worker is about to do, so that a failure has a name; case is null for our own work
    facts {case, fields}
        fields of the case's row
    ended {case, status, reason, phase, log_tail, poisoned}
        the case goes no further; poisoned: the process cannot be used any more
    warm {case, stationary, graph_reason, launch_ms, shortest_call_ms}
        the warm-up is over; stationary: null if it had too few calls to tell. What launching the
        call costs the host (CUDA), and the shortest call that this process could make
    samples {case, quantities, spent_s}
        one block of one case: readings of each quantity, and the conditions
    watched {case, window, tables, missing}
        what the device's counters read while the case ran, and why columns are missing
"""

from collections.abc import Callable
from functools import partial
from itertools import groupby
from statistics import median
from time import perf_counter, time
from typing import NamedTuple

from torch import Tensor

from ...impls import load
from ...impls.problem import Problem
from ..cases import Case
from ..measure.clock import Clock, Timer, calls_per_block, clock_for
from ..measure.conditions import conditions_for
from ..measure.launch import launch_ms, shortest_call_ms
from ..measure.memory_budget import available_bytes
from ..measure.peak_memory import release
from ..measure.prepared_call import (
    PreparedCall,
    Tensors,
    make_gradient,
    make_tensors,
    prepare_call,
)
from ..measure.steady_loop import LaunchMode
from ..measure.warm_heap import WarmHeap
from ..stats import stationary
from .check import Checker
from .phases import PhaseRunner, Say, WorkerConfig
from .window import Watched, profile_kernels, watch_window

WARM_UP_S = 0.3  # at least
WARM_AGAIN_S = 0.1  # at least, if this process has warmed the case up before: its memory is new
MAX_WARM_UP_S = 5.0  # or the plan's time per case, if that is less
# of the free memory: a group's cases hold their inputs together, and the heap what they freed
ROOM_SHARE = 0.9


class WarmCase(NamedTuple):
    """A case that is ready to be sampled."""

    prepared: PreparedCall
    run: Callable[[], object]
    timer: Timer
    calls: int
    call_ms: float


class Measurer:
    """Checks cases one by one, then keeps a group's cases warm together for the blocks."""

    def __init__(self, config: WorkerConfig, say: Say) -> None:
        self.config = config
        self.say = say
        self.warm: dict[str, WarmCase] = {}
        self.warmed: set[str] = set()
        # before the budget, which excludes its buffers
        self.clock: Clock = clock_for(config.device)
        self.shortest_call_ms = shortest_call_ms(self.clock, config.device)
        self.phases = PhaseRunner(config, say, forget=lambda case_id: self.warm.pop(case_id, None))
        self.heap = WarmHeap() if config.warm_heap and config.device.type == "cpu" else None
        if self.heap:
            self.heap.give_back()  # fixed thresholds: from the first tensor on, large ones go whole
        self.conditions = conditions_for(config.device)
        self.on = (config.device, config.watched)
        self._checker = Checker(self.phases, self.clock, resident=self.heap is not None)

    def check(self, cases: list[Case]) -> None:
        """Preflight, correctness and memory of each case."""
        self._checker.check(cases)

    def warm_up(self, cases: list[Case]) -> None:
        """Prepare all cases on fresh inputs, shared by the backends of a problem, and warm them up.

        Each case is known to fit into the budget alone; together they may use what the machine has.
        """
        if self.config.device.type == "cpu":
            free_bytes = ROOM_SHARE * available_bytes(self.config.device)
            self.phases.make_room(max(0, int(free_bytes) - self.config.budget_bytes))
        if self.heap:
            self.heap.keep()
        for problem, same in groupby(cases, key=lambda case: case.problem):
            tensors: tuple[Tensors, Tensor | None] | None = None
            for case in same:
                make = partial(self._tensors, problem)
                tensors = tensors or self.phases.run(case, "prepare", make)
                prepared = self._prepare(case, *tensors) if tensors else None
                if prepared:
                    warm = self.phases.run(case, "latency", partial(self._warm, case, prepared))
                    if warm:
                        self.warm[case.id] = warm
                    del warm
                del prepared  # nothing else holds one that failed

    def _tensors(self, problem: Problem) -> tuple[Tensors, Tensor | None]:
        device = self.config.device
        return make_tensors(problem, device, self.config.seed), make_gradient(problem, device)

    def _prepare(
        self, case: Case, tensors: Tensors, gradient: Tensor | None
    ) -> PreparedCall | None:
        backend = self.phases.run(case, "latency", partial(load, case.backend))
        if backend is None:
            return None
        phase = "compile" if backend.compiles else "latency"
        prepare = partial(prepare_call, case.problem, backend, tensors, gradient)
        return self.phases.run(case, phase, prepare)

    def _warm(self, case: Case, prepared: PreparedCall) -> WarmCase:
        with prepared.in_force():
            run = partial(prepared.run, prepared.setup())
            run()  # what happens only once (plans, lazy modules, compiling) is not warm-up
            self.clock.finish()
            least_s = WARM_AGAIN_S if case.id in self.warmed else WARM_UP_S
            is_stationary, call_ms = self._call_until_stationary(run, least_s)
            timer = self.clock.timer(run, call_ms)
            floor = {
                "launch_ms": launch_ms(self.clock, self.config.device, run),
                "shortest_call_ms": self.shortest_call_ms,
            }
        self.warmed.add(case.id)
        event = {"event": "warm", "case": case.id, "stationary": is_stationary}
        self.say({**event, "graph_reason": timer.graph_reason, **floor})
        calls = calls_per_block(call_ms, self.clock.BLOCK_MS)
        return WarmCase(prepared, run, timer, calls, call_ms)

    def _call_until_stationary(
        self, run: Callable[[], object], least_s: float
    ) -> tuple[bool | None, float]:
        """Call until the times are stationary or the warm-up's time is over.

        Returns whether they are stationary, and how long a call takes now, in ms.
        """
        most_s = min(MAX_WARM_UP_S, max(least_s, self.config.max_warm_up_s))
        readings: list[float] = []
        start = latest = perf_counter()
        look_s = least_s
        while True:
            begun = latest
            run()
            self.clock.finish()
            latest = perf_counter()
            readings.append((latest - begun) * 1e3)
            spent_s = latest - start
            # Looks at growing times: a search for a trend after each of many short calls is slow.
            if spent_s >= look_s:
                found = stationary(readings)
                if found or spent_s >= most_s:
                    return found, median(readings[-5:])
                look_s = 1.25 * spent_s

    def sample(self, cases: list[Case]) -> None:
        """One block: the given cases in the given order, with the calls that fill its share."""
        for case in cases:
            if case.id in self.warm:
                self.phases.run(case, "latency", partial(self._sample, case))

    def _sample(self, case: Case) -> None:
        prepared, _, timer, calls, _ = self.warm[case.id]
        started_unix_s = time()
        with prepared.in_force():
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
        event = {"event": "samples", "case": case.id, "quantities": quantities}
        self.say({**event, "spent_s": samples.spent_s})

    def watch(
        self, case: Case, measure: tuple[str, ...], window_s: float, mode: LaunchMode
    ) -> None:
        """One window of a warm case under the device's counters."""
        if case.id in self.warm:
            warm = self.warm[case.id]
            arguments = (warm.run, warm.call_ms, window_s, measure, mode, self.on)
            self._watch(case, "utilization", warm, partial(watch_window, *arguments))

    def profile_kernels(self, cases: list[Case]) -> None:
        """What a call of each warm case launches."""
        for case in cases:
            if case.id in self.warm:
                warm = self.warm[case.id]
                profile = partial(profile_kernels, warm.run, self.config.measure, self.on)
                self._watch(case, "kernels", warm, profile)

    def _watch(self, case: Case, phase: str, warm: WarmCase, take: Callable[[], Watched]) -> None:
        def watched() -> Watched:
            with warm.prepared.in_force():
                return take()

        found = self.phases.run(case, phase, watched)
        if found:
            self.say({"event": "watched", "case": case.id, **found._asdict()})

    def release(self) -> None:
        """Hold no tensors between steps, and return their memory."""
        self.warm.clear()
        if self.heap:
            self.heap.give_back()
        release(self.config.device)
        self.phases.make_room(0)
