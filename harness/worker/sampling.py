"""Cases that are warm: warm them up, time blocks, and hand over what a timed call returned."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import time
from typing import Any

from torch import Tensor

from ... import impls
from ...impls.problem import Problem
from ..cases.case import Case
from ..devices.environment import available_bytes
from ..measure.clock import Clock, Timer, launch_ms, now_s, shortest_call_ms
from ..measure.conditions import conditions_for
from ..measure.input_values import NOT_READ, EachCall, InputValues, turns_of
from ..measure.judge import BadResult, places, taken
from ..measure.output_check import CHANGED, WRITES, FirstLook, digest, improper, tensors_of
from ..measure.peak_memory import release
from ..measure.prepared_call import PreparedCall, prepare_call
from ..measure.short_waits import ShortWaits
from ..measure.steady_loop import LaunchMode
from ..measure.warm_heap import WarmHeap
from ..process.child import CaseEnded
from ..rows.plans import most_warm_up_s
from ..rows.status import Status
from .blocks import BlockTimer, call_until_stationary
from .observe import Watched, profile_kernels, watch_window
from .settings import Settings

FIRST_APART_BELOW_MS = 20.0  # a longer call fills caches in a small part of its time
# of the free memory: a group's cases hold their inputs together, and the heap what they freed
ROOM_SHARE = 0.9
SAME_MEMORY = "every call returns the same memory; wanted new memory for each result"
UNJOINED = "works on another stream than the current one, after the call's last event"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmCase:
    """Ready to be timed. `values`: of its problem, shared with other backends."""

    case: Case
    prepared: PreparedCall
    run: Callable[[], object]
    timer: Timer
    values: InputValues
    call_ms: float


class Sampling:
    """The warm cases of a group, between its first `warm_up` and `release`."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings, self.clock = settings, clock
        self.device = settings.device
        on_cpu = self.device.type == "cpu"
        self.shortest_call_ms = shortest_call_ms(clock, self.device)
        self.heap = WarmHeap() if settings.warm_heap and on_cpu else None
        watched = conditions_for(self.device)
        waits = ShortWaits() if on_cpu else None
        self.block_timer = BlockTimer(watched, waits, heap_is_warm=self.heap is not None)
        self.warm: dict[str, WarmCase] = {}
        self.values: dict[tuple[Problem, str], InputValues] = {}
        self.result: object = None  # of the last call of the last block

    def warm_up(self, case: Case, least_s: float, most_s: float) -> dict[str, Any]:
        """Prepare the case on the inputs of its problem, and call it until its times are
        stationary. Raises CaseEnded.
        """
        self._make_room()
        values = self._values_of(case)
        prepared = self._prepare(case, values)
        with prepared.in_force():
            readings: list[float] = []
            run = prepared.anew()
            digests = self._first_digests(prepared, run, readings)
            self._take_turns(values, run)
            seconds = least_s, most_warm_up_s(most_s, least_s)
            each = EachCall(values)
            with self.block_timer.foreseeing():
                found = call_until_stationary(run, self.clock, readings, seconds, each)
            each.restore()
            stationary, call_ms = found
            timer = self.clock.timer(run, call_ms, prepared.for_graph)
            launching_ms = launch_ms(self.clock, self.device, run)
        if names := values.written():
            raise CaseEnded(Status.INCORRECT, WRITES.format(names), "latency")
        self.warm[case.id] = WarmCase(
            case=case, prepared=prepared, run=run, timer=timer, values=values, call_ms=call_ms
        )
        return {
            "stationary": stationary,
            "graph_reason": timer.graph_reason,
            "call_ms": call_ms,
            "launch_ms": launching_ms,
            "shortest_call_ms": self.shortest_call_ms,
            "kv_copies": values.turns.count if values.turns else None,
            "digests": digests,
        }

    def _make_room(self) -> None:
        """Each case is known to fit into the budget alone; together they may use what the machine
        has.
        """
        if self.warm:
            return
        free_bytes = int(ROOM_SHARE * available_bytes(self.device))
        self.settings.budget.enforce(max(0, free_bytes - self.settings.budget_bytes))
        if self.heap:
            self.heap.keep()

    def _values_of(self, case: Case) -> InputValues:
        key = case.problem, impls.input_order(case.backend, case.problem)
        if key not in self.values:
            self.values[key] = InputValues(case.problem, self.device, self.settings.seed, key[1])
        return self.values[key]

    def _prepare(self, case: Case, values: InputValues) -> PreparedCall:
        backend = impls.load(case.backend)
        if not (backend.compiles or backend.compiles_ahead):
            return prepare_call(case.problem, backend, values.tensors, values.gradient)
        with self.settings.budget.for_code():
            backend.compile_ahead(case.problem, self.device)
            return prepare_call(case.problem, backend, values.tensors, values.gradient)

    def _first_digests(
        self, prepared: PreparedCall, run: Callable[[], object], readings: list[float]
    ) -> list[str]:
        """Of two calls' results; how long they took goes to `readings`, in ms."""
        results = []
        for _ in range(2):
            begun_s = now_s()
            results.append(run())
            self.clock.finish()
            readings.append((now_s() - begun_s) * 1e3)
            self._refuse_improper(prepared, results[-1])
        memory = [
            {one.data_ptr() for one in tensors_of(result) if one.numel()} for result in results
        ]
        if memory[0] & memory[1]:
            raise CaseEnded(Status.INCORRECT, SAME_MEMORY, "latency")
        return list(map(digest, results))

    def _refuse_improper(self, prepared: PreparedCall, result: object) -> None:
        tensors = tensors_of(result)
        output, gradients = (None, tensors) if prepared.problem.backward else (result, ())
        if complaint := improper(prepared.problem, output, gradients, prepared.tensors):
            raise CaseEnded(Status.INCORRECT, complaint, "latency")

    def _take_turns(self, values: InputValues, run: Callable[[], object]) -> None:
        """Make copies of keys and values if each call is to read others."""
        if self.settings.cold_caches and values.turns is None:
            values.turns = turns_of(values.problem, values.tensors.inputs)
        if values.turns is not None:
            are_read = values.turns.are_read_by(run)
            values.turns.renew()
            if not are_read:
                raise CaseEnded(Status.UNSUPPORTED, NOT_READ, "latency")

    def renew(self, case: str, seed: int) -> dict[str, Any]:
        """Give the case's inputs the numbers of the round's seed. This may take longer than a block
        and is none of its time, so the parent asks for it before its own clock starts.
        """
        self.result = None
        values = self.warm[case].values
        if values.seed != seed:
            values.draw(seed)
        elif values.turns is not None:
            values.turns.renew_taken()
        return {}

    def sample(self, case: str, seed: int, calls: int) -> dict[str, Any]:
        """One block, on the numbers of the round's seed. Raises CaseEnded."""
        self.renew(case, seed)
        warm, started_unix_s = self.warm[case], time()
        values = warm.values
        begun_s = now_s()
        each, apart = EachCall(values), warm.call_ms < FIRST_APART_BELOW_MS
        with warm.prepared.in_force():
            block = self.block_timer.measure(warm.timer, calls, each, first=apart)
        block_s = now_s() - begun_s
        samples = block.samples
        self.result = samples.result
        each.restore()
        self._refuse_improper(warm.prepared, samples.result)
        if names := values.written():
            raise CaseEnded(Status.INCORRECT, WRITES.format(names), "latency")
        if samples.looked is not None and samples.looked.changed:
            raise CaseEnded(Status.INCORRECT, CHANGED, "latency")
        if 2 * (samples.unjoined_calls or 0) > len(samples.block_ms):
            raise CaseEnded(Status.INCORRECT, UNJOINED, "latency")
        conditions = {"calls": calls, **block.conditions, "started_unix_s": started_unix_s}
        quantities = {
            "block_ms": samples.block_ms,
            "wall_block_ms": samples.wall_block_ms,
            "hot_block_ms": samples.hot_block_ms,
            "graph_block_ms": samples.graph_block_ms,
            "conditions": conditions,
        }
        return {"quantities": quantities, "spent_s": block.spent_s, "block_s": block_s}

    def output(self, case: str, places_seed: int) -> dict[str, Any]:
        """What the last call of the last block returned, at places that nobody knew before. With
        gradients it is a further call, whose output has a gradient at those places only.
        """
        warm, result = self.warm[case], self.result
        problem = warm.case.problem
        if problem.backward:
            gradient = warm.values.judged_gradient(places_seed)
            self.result = None
            prepared = replace(warm.prepared, grad_output=gradient)
            with prepared.in_force():
                result = self._judged_call(prepared, warm)
                looked = FirstLook(result)
            self.clock.finish()
            if looked.changed:
                raise CaseEnded(Status.INCORRECT, CHANGED, "latency")
        self.result = None
        try:
            return {"numbers": taken(problem, tensors_of(result), places(problem, places_seed))}
        except BadResult as wrong:
            raise CaseEnded(Status.INCORRECT, str(wrong), "latency") from None

    def _judged_call(self, prepared: PreparedCall, warm: WarmCase) -> object:
        """With the graph of the timed calls, if only the backward pass is timed."""
        if prepared.problem.passes != "backward":
            return prepared.run(None)
        ready: Tensor = warm.run.args[0]  # type: ignore[attr-defined]
        return prepared.run(ready)

    def window(self, case: str, window_s: float, mode: LaunchMode) -> dict[str, Any]:
        """One window of a warm case under the device's counters."""
        warm, on = self.warm[case], (self.device, self.settings.watched)
        calls = warm.run, warm.prepared.for_graph
        self.block_timer.end()
        with warm.prepared.in_force():
            found: Watched = watch_window(
                *calls, warm.call_ms, window_s, self.settings.measure, mode, on
            )
        return found._asdict()

    def profile(self, case: str) -> dict[str, Any]:
        """What a call launches."""
        warm, on = self.warm[case], (self.device, self.settings.watched)
        self.block_timer.end()
        with warm.prepared.in_force():
            return profile_kernels(warm.run, self.settings.measure, on)._asdict()

    def forget(self, name: str) -> None:
        """Hold no tensors of a case that has ended."""
        self.result = None
        self.warm.pop(name, None)

    def release(self) -> None:
        """Hold no tensors between groups, and return their memory."""
        self.result = None
        self.warm.clear()
        self.values.clear()
        self.block_timer.end()
        if self.heap:
            self.heap.give_back()
        release(self.device)
        self.settings.budget.enforce()
