"""Measure a group inside a worker: refuse, prepare, gate, memory, latency, utilization.

Everything is reported at once as an event, a JSON-ready dict with the key "event":

    running {case, phase}
        what the worker is about to do, so that a failure has a name; case is null for our own work
    facts {case, fields}
        fields of the case's row
    ended {case, status, reason, phase, log_tail, poisoned, by_time}
        the case goes no further; poisoned: the process cannot be used any more; by_time: times
        alone say so. Errors and verdicts on results come from the judge (judge.py)
    warm {case, stationary, graph_reason, call_ms, launch_ms, shortest_call_ms, kv_copies}
        the warm-up is over; stationary: null if it had too few calls to tell. What launching the
        call costs the host (CUDA), the shortest call that this process could make, and how many
        copies of keys and values take turns
    samples {case, quantities, spent_s, block_s, repeats_exactly}
        one block of one case: readings of each quantity, and the conditions; spent_s is the sum of
        the readings of all tries, block_s the whole block by the worker's clock; repeats_exactly:
        whether calls with equal inputs gave equal bits so far, null if there were none
    watched {case, window, tables, missing}
        what the device's counters read while the case ran, and why columns are missing
"""

import secrets
from collections.abc import Callable
from functools import partial
from time import time

from torch import Tensor

from ...impls import load
from ...impls.problem import Problem
from ..cases.case import Case
from ..machine.free_memory import available_bytes
from ..measure.clock import Clock, clock_for, now_s
from ..measure.cold_keys import NOT_READ, in_turn, turns_of
from ..measure.conditions import conditions_for
from ..measure.input_values import InputValues
from ..measure.launch import launch_ms, shortest_call_ms
from ..measure.output_check import FROM_MEMORY, SAME_MEMORY, Fingerprint, share_storage
from ..measure.peak_memory import release
from ..measure.prepared_call import PreparedCall, prepare_call
from ..measure.short_waits import ShortWaits
from ..measure.steady_loop import LaunchMode
from ..measure.warm_heap import WarmHeap
from ..rows.record import Status
from ..rows.warm_up import WARM_AGAIN_S, WARM_UP_S, most_warm_up_s
from .check import Checker
from .confirm import WarmCase, confirm
from .judge_client import Ask, JudgeClient
from .judged_call import Judging
from .phases import PhaseRunner, Say, WorkerConfig
from .shared_inputs import by_inputs, exact_result, made_inputs
from .timed_block import BlockTimer
from .warm_up import call_until_stationary
from .window import Watched, profile_kernels, watch_window

FIRST_APART_BELOW_MS = 20.0  # a longer call fills caches in a small part of its time
# of the free memory: a group's cases hold their inputs together, and the heap what they freed
ROOM_SHARE = 0.9


class Measurer:
    """Checks cases one by one, then keeps a group's cases warm together for the blocks. `ask`: the
    judge of their results.
    """

    def __init__(self, config: WorkerConfig, say: Say, ask: Ask) -> None:
        self.config = config
        self.say = say
        self.judge = JudgeClient(ask, config)
        self.warm: dict[str, WarmCase] = {}
        self.warmed: set[str] = set()
        self.blocks = 0  # since the cases were warmed up
        # before the budget, which excludes its buffers
        self.clock: Clock = clock_for(config.device)
        self.shortest_call_ms = shortest_call_ms(self.clock, config.device)
        self.phases = PhaseRunner(config, say, forget=lambda case_id: self.warm.pop(case_id, None))
        self.heap = WarmHeap() if config.warm_heap and config.device.type == "cpu" else None
        if self.heap:
            self.heap.give_back()  # fixed thresholds: from the first tensor on, large ones go whole
        waits = ShortWaits() if config.device.type == "cpu" else None
        watched = conditions_for(config.device)
        self.block_timer = BlockTimer(watched, waits, heap_is_warm=self.heap is not None)
        self.on = (config.device, config.watched)
        resident = self.heap is not None
        self.judging = Judging(phases=self.phases, judge=self.judge, clock=self.clock)
        self._checker = Checker(self.judging, resident=resident)

    def check(self, cases: list[Case]) -> None:
        """Preflight, correctness and memory of each case."""
        self._checker.check(cases)
        self.phases.settle("memory")

    def warm_up(self, cases: list[Case]) -> None:
        """Prepare all cases on fresh inputs, shared by the backends of a problem, and warm them up.

        Each case is known to fit into the budget alone; together they may use what the machine has.
        """
        free_bytes = ROOM_SHARE * available_bytes(self.config.device)
        self.phases.make_room(max(0, int(free_bytes) - self.config.budget_bytes))
        if self.heap:
            self.heap.keep()
            self.phases.kept_heap = self.heap
        for (problem, order), same in by_inputs(cases).items():
            self._warm_up_problem(problem, order, same)

    def _warm_up_problem(self, problem: Problem, order: str, cases: list[Case]) -> None:
        values, cases = made_inputs(self.phases, problem, order, cases)
        if values is None:
            return
        if exact_result(self.phases, self.judge, values, cases, "process") is None:
            return
        for case in cases:
            prepared = self._prepare(case, values)
            if prepared:
                warm_up = partial(self._warm, case, prepared, values)
                with self.block_timer.foreseeing():
                    warm = self.phases.run(case, "latency", warm_up)
                if warm:
                    self.warm[case.id] = warm
                else:
                    values.restore()
                del warm
            del prepared  # nothing else holds one that failed

    def _prepare(self, case: Case, values: InputValues) -> PreparedCall | None:
        backend = self.phases.run(case, "latency", partial(load, case.backend))
        if backend is None or self.phases.compiled_ahead(case, backend) is None:
            return None
        phase = "compile" if backend.compiles else "latency"
        prepare = partial(prepare_call, case.problem, backend, values.tensors, values.gradient)
        return self.phases.run(case, phase, prepare)

    def _warm(self, case: Case, prepared: PreparedCall, values: InputValues) -> WarmCase | None:
        """Check a call with flipped inputs, note what later calls must give, and warm up."""
        with prepared.in_force():
            readings: list[float] = []
            values.flip_inputs()  # the correctness check saw the other signs
            try:
                complaint, output = self.judging.call(case, prepared, values, "process", readings)
            finally:
                values.flip_inputs()
            run = prepared.anew()
            is_exact = prepared.backend.exactness == "exact"
            fingerprint = Fingerprint(case.problem, secrets.randbits(32), is_exact=is_exact)
            if not complaint:
                known = self._known_results(case, output, readings)
                if known:
                    fingerprint = known
                elif is_exact and values.follows_columns and _is_warm(readings):
                    fingerprint.expected[True] = fingerprint.take(output)
                    values.only_flipped = True
                else:
                    complaint = self._two_results(run, output, values, fingerprint, readings)
            del output
            if not complaint and not fingerprint.follows_inputs():
                complaint = FROM_MEMORY
            if not complaint:
                values.flip(values.only_flipped)
                if not self._take_turns(values, run):
                    self.phases.end(case, Status.UNSUPPORTED, NOT_READ, "latency")
                    values.flip(False)
                    return None
                first_s = self.config.first_warm_up_s
                least_s = min(WARM_AGAIN_S, first_s) if case.id in self.warmed else first_s
                look = partial(fingerprint.look, flipped=values.flipped)
                most_s = most_warm_up_s(self.config.max_warm_up_s, least_s)
                times = least_s, most_s
                with in_turn(values.turns, look) as seen:
                    found = call_until_stationary(run, self.clock, readings, times, seen)
                is_stationary, call_ms = found
                timer = self.clock.timer(run, call_ms, prepared.for_graph)
                complaint = values.written_to(thorough=True) or fingerprint.complaint
                values.flip(False)
                floor = {
                    "launch_ms": launch_ms(self.clock, self.config.device, run),
                    "shortest_call_ms": self.shortest_call_ms,
                    "kv_copies": values.turns.count if values.turns else None,
                }
        if complaint:
            self.phases.end(case, Status.INCORRECT, complaint, "latency")
            return None
        self.warmed.add(case.id)
        event = {"event": "warm", "case": case.id, "stationary": is_stationary, "call_ms": call_ms}
        self.say({**event, "graph_reason": timer.graph_reason, **floor})
        return WarmCase(case, prepared, run, timer, values, fingerprint, call_ms)

    def _take_turns(self, values: InputValues, run: Callable[[], object]) -> bool:
        """Make copies of keys and values if each call is to read others; whether it does."""
        if self.config.cold_caches and values.turns is None:
            values.turns = turns_of(values.problem, values.tensors.inputs)
        if values.turns is None:
            return True
        are_read = values.turns.are_read_by(run)
        values.turns.renew()
        return are_read

    def _two_results(
        self,
        run: Callable[[], object],
        output: Tensor,
        values: InputValues,
        fingerprint: Fingerprint,
        readings: list[float],
    ) -> str:
        """Note what later calls must give, with either sign of the inputs; a complaint or "".

        `output`: of flipped inputs. Adds how long a call takes to `readings`, in ms.
        """
        flipped: object = output
        if values.problem.passes == "forward+backward":
            values.flip(True)
            flipped = run()
            values.flip(False)
        begun = now_s()
        result = run()
        self.clock.finish()
        readings.append((now_s() - begun) * 1e3)
        expected = fingerprint.take(result)
        # If only the backward pass runs the output's gradient flips, in which gradients are linear.
        backward = values.problem.passes == "backward"
        fingerprint.expected = {
            False: expected,
            True: -expected if backward else fingerprint.take(flipped),
        }
        if not backward and share_storage(result, flipped):
            return SAME_MEMORY
        return ""

    def _known_results(
        self, case: Case, output: Tensor, readings: list[float]
    ) -> Fingerprint | None:
        """What later calls must give, if that is known without a second call.

        `output`: of flipped inputs. A long call needs no more warm-up; its other result was judged
        when the case was checked, in this process, and its memory is when the next one is there.
        """
        known = self._checker.fingerprints.pop(case.id, None)
        if known is None or not _is_warm(readings):
            return None
        known.expected[True] = known.take(output)
        known.hold(output)
        return known

    def sample(self, cases: list[Case], calls: dict[str, int]) -> None:
        """One block: the given cases in the given order, each with its number of calls.

        The inputs of a problem get new values before every second block, in place. Before the
        others they get values with known results, unless all results of the new ones are known.
        """
        self.blocks += 1
        for values in self._values():
            if self.blocks % 2:
                values.renew()
            elif not self._known(values):
                values.repeat()
            if values.turns:
                values.turns.renew()
        for case in cases:
            if case.id in self.warm:
                sample = partial(self._sample, case, calls[case.id])
                self.phases.run(case, "latency", sample, block=True)

    def _sample(self, case: Case, calls: int) -> None:
        warm = self.warm[case.id]
        started_unix_s = time()
        begun = now_s()
        values = warm.values
        look = partial(warm.fingerprint.look, flipped=values.flipped, columns=values.columns)
        with warm.prepared.in_force():
            apart = warm.call_ms < FIRST_APART_BELOW_MS
            with in_turn(values.turns, look) as seen:
                block = self.block_timer.measure(warm.timer, calls, seen, first=apart)
        samples = block.samples
        complaint, wrong = warm.values.written_to(), warm.fingerprint.complaint
        if wrong and not complaint and self._inputs_changed(warm.values):
            return
        complaint = complaint or wrong
        if not complaint and 2 * (samples.unjoined_calls or 0) > len(samples.block_ms):
            complaint = "works on another stream than the current one, after the call's last event"
        if complaint:
            del self.warm[case.id]
            warm.values.restore()
            warm.values.repeat()  # of which the other cases' results are known
            self.phases.end(case, Status.INCORRECT, complaint, "latency")
            return
        self.warm[case.id] = warm._replace(shortest_ms=min(samples.block_ms))
        conditions = {"calls": calls, "new_values": self.blocks % 2, **block.conditions}
        conditions["started_unix_s"] = started_unix_s
        quantities = {
            "block_ms": samples.block_ms,
            "wall_block_ms": samples.wall_block_ms,
            "hot_block_ms": samples.hot_block_ms,
            "graph_block_ms": samples.graph_block_ms,
            "conditions": conditions,
        }
        event = {"event": "samples", "case": case.id, "quantities": quantities}
        times = {"spent_s": block.spent_s, "block_s": now_s() - begun}
        self.say({**event, **times, "repeats_exactly": warm.fingerprint.repeats_exactly})

    def confirm(self, cases: list[Case]) -> None:
        """After the last block, untimed; no case is warm after it (confirm.py)."""
        for values in self._values():
            some = [self.warm[case.id] for case in cases if case.id in self.warm]
            some = [warm for warm in some if warm.values is values]
            if some and not self._inputs_changed(values):
                confirm(self.judging, values, some)
        self.warm.clear()

    def watch(
        self, case: Case, measure: tuple[str, ...], window_s: float, mode: LaunchMode
    ) -> None:
        """One window of a warm case under the device's counters."""
        if case.id in self.warm:
            warm = self.warm[case.id]
            calls = warm.run, warm.prepared.for_graph
            watch = partial(watch_window, *calls, warm.call_ms, window_s, measure, mode, self.on)
            self._watch(case, "utilization", warm, watch)

    def profile_kernels(self, cases: list[Case]) -> None:
        """What a call of each warm case launches."""
        for case in cases:
            if case.id in self.warm:
                warm = self.warm[case.id]
                profile = partial(profile_kernels, warm.run, self.config.measure, self.on)
                self._watch(case, "kernels", warm, profile)

    def _watch(self, case: Case, phase: str, warm: WarmCase, take: Callable[[], Watched]) -> None:
        def watched() -> Watched:
            self.block_timer.end()
            with warm.prepared.in_force():
                return take()

        found = self.phases.run(case, phase, watched)
        if found:
            self.say({"event": "watched", "case": case.id, **found._asdict()})

    def _inputs_changed(self, values: InputValues) -> bool:
        """End every case that shares inputs which somebody changed and torch did not count."""
        changed = values.changed()
        if not changed:
            return False
        cases = [warm.case for warm in self.warm.values() if warm.values is values]
        names = ", ".join(case.backend for case in cases)
        reason = f"inputs ({changed}) were changed while {names} were timed, by one of them"
        for case in cases:
            del self.warm[case.id]
            self.phases.end(case, Status.ERROR, reason, "latency")
        return True

    def _known(self, values: InputValues) -> bool:
        """Whether it is known what each backend must give for these values."""
        backends = [warm.prepared.backend for warm in self.warm.values() if warm.values is values]
        all_exact = all(one.exactness == "exact" for one in backends)
        return values.columns is None or (all_exact and values.columns.results is not None)

    def _values(self) -> list[InputValues]:
        """The inputs of the warm cases, once per problem."""
        return [*{id(warm.values): warm.values for warm in self.warm.values()}.values()]

    def release(self) -> None:
        """Hold no tensors between steps, and return their memory.

        Inputs that are not what they were, unnoticed until now, end every case that had them.
        """
        for values in self._values():
            self._inputs_changed(values)
        self.phases.settle("latency")
        self.warm.clear()
        self.block_timer.end()
        self.blocks = 0
        self.phases.kept_heap = None
        if self.heap:
            self.heap.give_back()
        release(self.config.device)
        self.phases.make_room(0)


def _is_warm(readings: list[float]) -> bool:
    """Whether the calls so far, in ms, are all that a warm-up has to be."""
    return sum(readings) >= WARM_UP_S * 1e3
