"""One group of cases: its steps, which ask workers until each case has a record.

schedule.py decides in which order groups and processes are measured.
"""

import random
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...impls import exactness, is_ours
from ..cases.case import Case, fields_of, reported_pairs
from ..cases.costs import known_costs
from ..devices.host import waited_s
from ..measure.conditions import launch_flags
from ..measure.physical_floor import refutation
from ..process.child import PHASES, CaseEnded
from ..process.worker_process import WorkerFailure
from ..rows.plans import WARM_AGAIN_S, first_warm_up_s
from ..rows.readings import tier_of
from ..rows.record import Record, Status
from .case_state import CaseState
from .sampling import Sampler
from .worker_pool import Runtime, Seat

PROC = Path("/proc")
REFERENCE_TIMES = 4  # how many of a case's time limits our own work, the exact result, may take
COMPILE_TIMES = 5  # and compiling: the first kernel on a machine takes half a minute of two cores
BASELINE = "sdpa"
"""What is timed beside a backend from outside, if the scenario's baseline is none of ours."""
CALLS_VARY = 0.875, 1.125
"""The number of calls of a block is drawn between so many times: no backend knows the last one."""
SEED_BITS = 62  # of a seed that JSON and a row can hold

Alive = Generator[Record, None, bool]
"""Gives records of cases that end; its value is whether the worker lives on."""


class GroupRun:
    """The steps of one group: check, sample per process, watch, finish.

    A step yields the records of the cases that end in it. Built-in backends share a worker; one
    from outside has its own, in which the baseline is timed beside it.
    """

    def __init__(self, runtime: Runtime, cases: Sequence[Case], *, number: int = 0) -> None:
        self.runtime, self.spec, self.number = runtime, runtime.spec, number
        self.order = random.Random(f"{self.spec.seed} {cases[0].id if cases else ''}")
        self.hidden = secrets.SystemRandom()  # what no backend may foresee
        self.states = {case.id: self._state(case) for case in cases}  # what is timed, by name
        self.sessions = {backend: secrets.token_hex(6) for backend in self.backends}
        self.sampler = Sampler(self.spec.how.plan, ())
        self.op = ""  # that a worker was asked last

    def _state(self, case: Case) -> CaseState:
        backend = "" if is_ours(case.backend) else case.backend
        return CaseState(case=case, fields=known_costs(case.problem), backend=backend)

    @property
    def left(self) -> list[CaseState]:
        """The cases without a record."""
        return [state for state in self.states.values() if state.beside is None]

    @property
    def backends(self) -> list[str]:
        """Whose workers it needs: the shared one's name is ""."""
        return sorted({state.backend for state in self.states.values()})

    # ---- steps -----------------------------------------------------------------------------------

    def check(self) -> Iterator[Record]:
        """Preflight, correctness and memory of every case, each in a process of its own where that
        costs little.
        """
        for state in self.left:
            yield from self._try(Seat(0, state.backend), state, self._check)
            self.runtime.listener.steps(state.name, 1)
        if "latency" not in self.spec.how.measure:
            return
        how, beside = self.spec.how, [self._baseline(one) for one in self.left if one.backend]
        self.states |= {one.name: one for one in beside}
        cases = [state.case for state in self.left if not state.backend]
        pairs = reported_pairs(cases, how.baseline, how.contrast)
        pairs += [(one.beside.name, one.name) for one in beside if one.beside]
        self.sampler = Sampler(how.plan, self.states, pairs)

    def needs_blocks(self, seat: Seat) -> bool:
        return bool(self._wanting(seat))

    def sample(self, seat: Seat) -> Iterator[Record]:
        """The blocks that this process still lacks before the next look at the precision. If it is
        lost, another one begins anew.
        """
        while not (yield from self._sampled(seat)):
            names = [name for name, one in self.states.items() if one.backend == seat.backend]
            self.sampler.forget(seat.process, names)

    def watch(self) -> Iterator[Record]:
        """Windows under the device's counters, spread over the processes; then profiles, as the
        last step of the last process.
        """
        spec = self.spec
        names = [one.name for one in self.left if spec.watches(one.case.problem)]
        for repeat in range(spec.windows):
            # with one window per case, groups take turns
            process = (self.number + repeat) % spec.how.plan.processes
            yield from self._each_warm(process, names, self._windows)
        if spec.profiles:
            last = spec.how.plan.processes - 1
            yield from self._each_warm(last, names, self._profile)
            if spec.device == "cuda":  # the profiler (CUPTI) stays in its process
                for backend in self.backends:
                    self.runtime.pool.dismiss(Seat(last, backend))

    def finish(self) -> Iterator[Record]:
        """The records of the cases that did not fail."""
        self.sampler.finish()
        for state in self.left:
            del self.states[state.name]
            if complaint := state.clock_complaint:
                yield self._record(state, Status.ERROR, complaint, "latency")
            else:
                yield self._record(state, Status.OK)

    def unfinished(self, status: Status, reason: str) -> Iterator[Record]:
        """Records of the cases that were being measured when the run was stopped."""
        for state in self.left:
            yield self._record(state, status, reason)
        self.states.clear()

    # ---- check -----------------------------------------------------------------------------------

    def _check(self, seat: Seat, one: CaseState) -> None:
        with self.runtime.pool.for_check(seat) as worker:
            self._begin(one, "check")
            limit_s = REFERENCE_TIMES * self.spec.how.limits.timeout_s
            one.compiles = worker.ask("draw", limit_s, case=one.case.fields()).compiles
            found = worker.ask("check", self._limit_s(one), case=one.name)
        one.fields |= found.fields

    def _baseline(self, state: CaseState) -> CaseState:
        """The baseline, to be timed in the worker of a backend from outside."""
        baseline = self.spec.how.baseline or BASELINE
        name = baseline if is_ours(baseline) else BASELINE
        return CaseState(
            case=Case(backend=name, problem=state.case.problem),
            fields={"exactness": exactness(name)},
            backend=state.backend,
            beside=state,
        )

    # ---- sampling --------------------------------------------------------------------------------

    def _wanting(self, seat: Seat) -> list[CaseState]:
        wanting = [self.states[name] for name in self.sampler.wanting(seat.process)]
        return [one for one in wanting if one.backend == seat.backend]

    def _sampled(self, seat: Seat) -> Alive:
        wanting, left = self._wanting(seat), self.sampler.blocks_left
        # Which of its blocks here is judged, counted down: nobody knows before.
        named = {one.name: self.hidden.randrange(left(one.name, seat.process)) for one in wanting}
        for one in wanting:
            if one.name in self.states and not (yield from self._try(seat, one, self._warm_up)):
                return False
        while wanting := self._wanting(seat):
            self.order.shuffle(wanting)
            more = self.hidden.uniform(*CALLS_VARY)
            calls = self.sampler.calls([one.name for one in wanting], self.spec.device, more)
            seeds = {one.case.problem: secrets.randbits(SEED_BITS) for one in wanting}
            for one in wanting:
                if one.name not in self.states:
                    continue  # it ended with another
                seed, count = seeds[one.case.problem], calls[one.name]
                block = partial(self._block, seed=seed, calls=count, named=named)
                if not (yield from self._try(seat, one, block)):
                    return False
        self._release(seat)
        return True

    def _release(self, seat: Seat) -> None:
        """Have a worker hold nothing any more."""
        try:
            self.runtime.pool.worker(seat).ask("release", self.spec.how.limits.timeout_s)
        except WorkerFailure:  # no case's: each has what it needs
            self.runtime.pool.dismiss(seat)

    def _warm_up(self, seat: Seat, one: CaseState) -> None:
        plan = self.spec.how.plan
        first_s = first_warm_up_s(plan.processes)
        again = seat.process in one.digests
        reply = self._ask(
            seat,
            one,
            "warm_up",
            case=one.case.fields(),
            least_s=min(WARM_AGAIN_S, first_s) if again else first_s,
            most_s=plan.budget_s / plan.processes,
        )
        one.warmed_up(seat.process, reply.model_dump())
        if one.name in self.sampler.samplings:  # not if no latency was requested
            self.sampler.samplings[one.name].stationary.append(reply.stationary)
            self.sampler.samplings[one.name].call_ms = reply.call_ms

    def _block(
        self, seat: Seat, one: CaseState, *, seed: int, calls: int, named: dict[str, int]
    ) -> None:
        """Time one block. The last result of one of them is judged in each process; of all, if
        results can only be compared with each other.
        """
        pool, process = self.runtime.pool, seat.process
        self._ask(seat, one, "renew", case=one.case.id, seed=seed)
        ours = [PROC / str(pid) for pid in (threading.get_native_id(), pool.worker(seat).pid)]
        waited, since = waited_s(ours) or 0.0, time.monotonic()
        reply = self._ask(seat, one, "sample", case=one.case.id, seed=seed, calls=calls)
        apart_s = time.monotonic() - since - max(0.0, (waited_s(ours) or 0.0) - waited)
        quantities = reply.quantities.model_dump()
        self.sampler.samplings[one.name].add(process, quantities, reply.spent_s)
        if self.spec.device == "cpu":  # theirs is of the calls alone, on a GPU of the whole block
            tries = quantities["conditions"].get("tries", 1)
            one.clocked(apart_s, reply.spent_s, calls=calls, tries=tries)
        else:
            one.clocked(apart_s, reply.block_s)
        if one.beside is None:
            self.runtime.listener.steps(one.name, 1 + self.sampler.done(one.name))
        is_last = not self.sampler.wants(one.name, process)
        left, named[one.name] = named[one.name], named[one.name] - 1
        is_named = left == 0 or (is_last and left > 0) or one.exactness == "approximate"
        if is_named and one.exactness != "other":
            self._judge(seat, one, seed)

    def _judge(self, seat: Seat, one: CaseState, seed: int) -> None:
        """Have the last result judged by a process that never ran a backend. Raises CaseEnded."""
        problem = one.case.problem
        places_seed = one.places_seed(secrets.randbits(SEED_BITS))
        found = self._ask(seat, one, "output", case=one.case.id, places_seed=places_seed)
        # what only the backward pass is measured of keeps its inputs
        values_seed = self.spec.seed if problem.passes == "backward" else seed
        try:
            verdict = self.runtime.pool.judged(
                REFERENCE_TIMES * self.spec.how.limits.timeout_s,
                problem=fields_of(problem),
                seeds={"values": values_seed, "first": self.spec.seed, "places": places_seed},
                results=found.numbers,
                exactness=one.exactness,
            )
        except WorkerFailure as failure:
            reason = f"its result could not be judged: {failure.reason}"
            raise CaseEnded(Status.ERROR, reason, "latency") from None
        if verdict.complaint:
            reason = f"in a timed call: {verdict.complaint}"
            raise CaseEnded(Status.INCORRECT, reason, "latency")
        if problem.passes != "backward":
            one.refuse_stale(seed, found.numbers)
        one.judged.append(
            {
                "process": seat.process,
                "values_seed": values_seed,
                "places_seed": places_seed,
                "error_ratio": verdict.error_ratio,
            }
        )

    # ---- windows ---------------------------------------------------------------------------------

    def _each_warm(
        self, process: int, names: Sequence[str], step: Callable[[Seat, CaseState], None]
    ) -> Iterator[Record]:
        """Warm each case up and take a step of it; a lost worker costs the others nothing."""
        for backend in self.backends:
            seat = Seat(process, backend)
            left = [one for one in self.left if one.name in names and one.backend == backend]
            self.order.shuffle(left)
            for one in left:
                for work in (self._warm_up, step):
                    if one.name in self.states:
                        yield from self._try(seat, one, work)
            self._release(seat)

    def _windows(self, seat: Seat, one: CaseState) -> None:
        window_s = self.spec.how.plan.window_s
        for mode in self.spec.launch_modes:
            more = {"window_s": window_s, "mode": mode}
            reply = self._ask(seat, one, "window", window_s, case=one.case.id, **more)
            if reply.window is not None:
                one.windows.append({"process": seat.process, **reply.window.model_dump()})
            one.missing |= reply.missing

    def _profile(self, seat: Seat, one: CaseState) -> None:
        reply = self._ask(seat, one, "profile", case=one.case.id)
        one.tables |= reply.tables
        one.missing |= reply.missing

    # ---- asking ----------------------------------------------------------------------------------

    def _begin(self, one: CaseState, op: str) -> None:
        self.op = op
        one.begin()
        self.runtime.listener.running(one.case.id, op)

    def _limit_s(self, state: CaseState) -> float:
        return self.spec.how.limits.timeout_s * (COMPILE_TIMES if state.compiles else 1)

    def _ask(self, seat: Seat, one: CaseState, op: str, more_s: float = 0.0, **fields: Any) -> Any:
        """One step. Raises CaseEnded, WorkerFailure, Interrupted."""
        self._begin(one, op)
        worker = self.runtime.pool.worker(seat)
        return worker.ask(op, self._limit_s(one) + more_s, **fields)

    def _try(self, seat: Seat, one: CaseState, step: Callable[[Seat, CaseState], None]) -> Alive:
        """One step of what is timed; if it fails, the record of its case."""
        since, pool = time.monotonic(), self.runtime.pool
        alive, failed = True, None
        try:
            step(seat, one)
        except CaseEnded as end:
            one.fields |= end.fields
            failed = end.status, end.reason, end.phase, end.log_tail
            if self.spec.device == "cuda" and end.status is Status.ERROR:
                pool.dismiss(seat)  # after some errors every further call fails
                alive = False
        except WorkerFailure as failure:
            reason = failure.reason
            if failure.status is Status.TIMEOUT:
                reason = (
                    f"one step took more than {self._limit_s(one):g} s; raise the limit with"
                    " --timeout, or make the case smaller"
                )
            tail = pool.dismiss(seat) or failure.log_tail
            failed = failure.status, reason, PHASES.get(self.op, ""), tail
            alive = False
        (one.beside or one).spent_s += time.monotonic() - since
        if failed is not None:
            for name in [
                name for name, other in self.states.items() if one in (other, other.beside)
            ]:
                del self.states[name]
                self.sampler.drop(name)
            if one.beside is None:
                yield self._record(one, *failed)
        return alive

    # ---- records ---------------------------------------------------------------------------------

    def _record(
        self,
        state: CaseState,
        status: Status,
        reason: str = "",
        phase: str = "",
        log_tail: str | None = None,
    ) -> Record:
        values: dict[str, Any] = {"phase": phase, "log_tail": log_tail}
        values |= {"started_utc": state.started_utc}
        values |= {"spent_s": state.spent_s} if state.started_utc else {}
        if status is Status.OK:
            sampling = self.sampler.samplings.get(state.case.id)
            if sampling is not None and sampling.block_ms:
                values |= {
                    "session": self.sessions[state.backend],
                    **sampling.fields(),
                    **self._beside(state),
                }
                if impossible := self._impossible(state, values):
                    return self._record(state, Status.ERROR, impossible, "latency")
                values |= launch_flags(state.fields | values)
            values |= {"windows": state.windows or None, "tables": state.tables or None}
            why = {} if state.windows else self.spec.without_windows(state.case.problem)
            values |= {"missing": {**why, **state.missing} or None}
            if "utilization" in self.spec.how.measure and state.windows:
                tier = tier_of(state.windows, self.spec.device, self.spec.peaks)
                values |= {"utilization_tier": tier}
        judged = {"judged": state.judged or None, **state.repeats()}
        return self.runtime.record(state.case, status, reason, **state.fields | values | judged)

    def _beside(self, state: CaseState) -> dict[str, Any]:
        """The samples of the baseline that was timed beside it."""
        for name, one in self.states.items():
            if one.beside is state and (block_ms := self.sampler.samplings[name].block_ms):
                return {"beside": one.case.backend, "beside_ms": block_ms}
        return {}

    def _impossible(self, state: CaseState, samples: dict[str, Any]) -> str:
        """Why the device cannot have done the work in this time; "" if it can."""
        row = {**samples, "exactness": state.fields.get("exactness")}
        shortest = state.fields.get("shortest_call_ms")
        return refutation(state.case.problem, row, self.spec.physical_device, shortest)
