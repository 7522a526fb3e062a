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

from ...impls import is_ours
from ..cases.case import Case, fields_of, reported_pairs
from ..cases.costs import known_costs
from ..devices.host import waited_s
from ..measure.launch_flags import launch_flags
from ..measure.physical_floor import refutation
from ..process.worker_process import CaseEnded, WorkerFailure
from ..rows.plans import WARM_AGAIN_S, first_warm_up_s
from ..rows.readings import tier_of
from ..rows.record import Record, Status
from .case_state import PHASES, CaseState, Timed
from .runtime import Runtime
from .sampling import Sampler
from .worker_pool import Seat, hanging_launch

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
        self.states = {case.id: self._state(case) for case in cases}  # without a record
        self.timed = {name: Timed(name, one.case, one) for name, one in self.states.items()}
        self.sessions = {backend: secrets.token_hex(6) for backend in self.backends}
        self.sampler = Sampler(self.spec.plan, ())
        self.op = ""  # that a worker was asked last

    def _state(self, case: Case) -> CaseState:
        backend = "" if is_ours(case.backend) else case.backend
        return CaseState(case=case, fields=known_costs(case.problem), backend=backend)

    @property
    def backends(self) -> list[str]:
        """Whose workers it needs: the shared one's name is ""."""
        return sorted({state.backend for state in self.states.values()})

    # ---- steps -----------------------------------------------------------------------------------

    def check(self) -> Iterator[Record]:
        """Preflight, correctness and memory of every case, each in a process of its own where that
        costs little.
        """
        for name in list(self.states):
            one = self.timed[name]
            yield from self._try(Seat(0, one.state.backend), one, self._check)
            self.runtime.listener.steps(name, 1)
        if "latency" not in self.spec.measure:
            return
        for state in list(self.states.values()):
            if state.backend:
                self._time_beside(state)
        cases = [state.case for state in self.states.values() if not state.backend]
        pairs = reported_pairs(cases, self.spec.baseline, self.spec.contrast)
        pairs += [(one.state.case.id, one.name) for one in self.timed.values() if not one.is_row]
        self.sampler = Sampler(self.spec.plan, self.timed, pairs)

    def needs_blocks(self, seat: Seat) -> bool:
        return bool(self._wanting(seat))

    def sample(self, seat: Seat) -> Iterator[Record]:
        """The blocks that this process still lacks before the next look at the precision. If it is
        lost, another one begins anew.
        """
        while not (yield from self._sampled(seat)):
            names = [name for name, one in self.timed.items() if one.state.backend == seat.backend]
            self.sampler.forget(seat.process, names)

    def watch(self) -> Iterator[Record]:
        """Windows under the device's counters, spread over the processes; then profiles."""
        spec = self.spec
        names = [n for n, state in self.states.items() if spec.watches(state.case.problem)]
        for repeat in range(spec.windows):
            # with one window per case, groups take turns
            process = (self.number + repeat) % spec.plan.processes
            yield from self._each_warm(process, names, self._windows)
        if spec.profiles:
            yield from self._each_warm(0, names, self._profile)
            if spec.device == "cuda":  # the profiler (CUPTI) stays in its process
                for backend in self.backends:
                    self.runtime.pool.dismiss(Seat(0, backend))

    def finish(self) -> Iterator[Record]:
        """The records of the cases that did not fail."""
        self.sampler.finish()
        for name in list(self.states):
            state = self.states.pop(name)
            if complaint := state.clock_complaint:
                yield self._record(state, Status.ERROR, complaint, "latency")
            else:
                yield self._record(state, Status.OK)

    def unfinished(self, status: Status, reason: str) -> Iterator[Record]:
        """Records of the cases that were being measured when the run was stopped."""
        for state in self.states.values():
            yield self._record(state, status, reason)
        self.states.clear()

    # ---- check -----------------------------------------------------------------------------------

    def _check(self, seat: Seat, one: Timed) -> None:
        state, name, timeout_s = one.state, one.case.id, self.spec.timeout_s
        with self.runtime.pool.for_check(seat) as worker:
            self._begin(one, "check")
            drawn = worker.ask("draw", REFERENCE_TIMES * timeout_s, case=one.case.fields())
            state.compiles = drawn.compiles
            found = worker.ask("check", self._limit_s(state), case=name)
        state.fields |= found.fields

    def _time_beside(self, state: CaseState) -> None:
        """Have the baseline timed in the worker of a backend from outside."""
        baseline = self.spec.baseline or BASELINE
        beside = Case(
            backend=baseline if is_ours(baseline) else BASELINE, problem=state.case.problem
        )
        name = f"{beside.id} beside {state.case.backend}"
        state.beside = beside.backend
        self.timed[name] = Timed(name, beside, state)

    # ---- sampling --------------------------------------------------------------------------------

    def _wanting(self, seat: Seat) -> list[str]:
        wanting = self.sampler.wanting(seat.process)
        return [name for name in wanting if self.timed[name].state.backend == seat.backend]

    def _sampled(self, seat: Seat) -> Alive:
        wanting, left = self._wanting(seat), self.sampler.blocks_left
        # Which of its blocks here is judged, counted down: nobody knows before.
        named = {name: self.hidden.randrange(left(name, seat.process)) for name in wanting}
        for name in wanting:
            if name in self.timed and not (
                yield from self._try(seat, self.timed[name], self._warm_up)
            ):
                return False
        while names := self._wanting(seat):
            self.order.shuffle(names)
            more = self.hidden.uniform(*CALLS_VARY)
            calls = self.sampler.calls(names, self.spec.device, more)
            seeds = {self.timed[name].case.problem: secrets.randbits(SEED_BITS) for name in names}
            for name in names:
                if (one := self.timed.get(name)) is None:
                    continue  # it ended beside another
                block = partial(self._block, seed=seeds[one.case.problem], calls=calls[name])
                if not (yield from self._try(seat, one, partial(block, named=named))):
                    return False
        self._release(seat)
        return True

    def _release(self, seat: Seat) -> None:
        """Have a worker hold nothing any more."""
        try:
            self.runtime.pool.worker(seat).ask("release", self.spec.timeout_s)
        except WorkerFailure:  # no case's: each has what it needs
            self.runtime.pool.dismiss(seat)

    def _warm_up(self, seat: Seat, one: Timed) -> None:
        plan = self.spec.plan
        first_s = first_warm_up_s(plan.processes)
        again = seat.process in one.state.digests
        reply = self._ask(
            seat,
            one,
            "warm_up",
            case=one.case.fields(),
            least_s=min(WARM_AGAIN_S, first_s) if again else first_s,
            most_s=plan.budget_s / plan.processes,
        )
        if one.is_row:
            one.state.warmed_up(seat.process, reply.model_dump())
        if one.name in self.sampler.samplings:  # not if no latency was requested
            self.sampler.samplings[one.name].stationary.append(reply.stationary)
            self.sampler.samplings[one.name].call_ms = reply.call_ms

    def _block(
        self, seat: Seat, one: Timed, *, seed: int, calls: int, named: dict[str, int]
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
        self.sampler.samplings[one.name].add(process, reply.quantities.model_dump(), reply.spent_s)
        if one.is_row:
            # On a CPU the readings themselves; on a GPU a block has more than those.
            own_s = reply.spent_s if self.spec.device == "cpu" else reply.block_s
            one.state.clocks.append((apart_s, own_s))
            self.runtime.listener.steps(one.name, 1 + self.sampler.done(one.name))
        is_last = not self.sampler.wants(one.name, process)
        left, named[one.name] = named[one.name], named[one.name] - 1
        is_named = left == 0 or (is_last and left > 0) or one.exactness == "approximate"
        if is_named and one.exactness != "other":
            self._judge(seat, one, seed)

    def _judge(self, seat: Seat, one: Timed, seed: int) -> None:
        """Have the last result judged by a process that never ran a backend. Raises CaseEnded."""
        state, problem = one.state, one.case.problem
        places_seed = state.places_seed(secrets.randbits(SEED_BITS))
        found = self._ask(seat, one, "output", case=one.case.id, places_seed=places_seed)
        # what only the backward pass is measured of keeps its inputs
        values_seed = self.spec.seed if problem.passes == "backward" else seed
        try:
            verdict = self.runtime.pool.judge().ask(
                "judged",
                REFERENCE_TIMES * self.spec.timeout_s,
                problem=fields_of(problem),
                seeds={"values": values_seed, "first": self.spec.seed, "places": places_seed},
                results=found.numbers,
                exactness=one.exactness,
            )
        except WorkerFailure as failure:
            self.runtime.pool.dismiss_judge()
            reason = f"its result could not be judged: {failure.reason}"
            raise CaseEnded(Status.ERROR, reason, "latency") from None
        if verdict.complaint:
            reason = f"in a timed call: {verdict.complaint}"
            raise CaseEnded(Status.INCORRECT, reason, "latency")
        if not one.is_row:
            return
        if problem.passes != "backward":
            state.refuse_stale(seed, found.numbers)
        state.judged.append(
            {
                "process": seat.process,
                "values_seed": values_seed,
                "places_seed": places_seed,
                "error_ratio": verdict.error_ratio,
            }
        )

    # ---- windows ---------------------------------------------------------------------------------

    def _each_warm(
        self, process: int, names: Sequence[str], step: Callable[[Seat, Timed], None]
    ) -> Iterator[Record]:
        """Warm each case up and take a step of it; a lost worker costs the others nothing."""
        for backend in self.backends:
            seat = Seat(process, backend)
            left = [name for name in names if name in self.states]
            left = [name for name in left if self.states[name].backend == backend]
            self.order.shuffle(left)
            for name in left:
                for work in (self._warm_up, step):
                    if name in self.states:
                        yield from self._try(seat, self.timed[name], work)
            self._release(seat)

    def _windows(self, seat: Seat, one: Timed) -> None:
        window_s, state = self.spec.plan.window_s, one.state
        for mode in self.spec.launch_modes:
            more = {"window_s": window_s, "mode": mode}
            reply = self._ask(seat, one, "window", window_s, case=one.case.id, **more)
            if reply.window is not None:
                state.windows.append({"process": seat.process, **reply.window.model_dump()})
            state.missing |= reply.missing

    def _profile(self, seat: Seat, one: Timed) -> None:
        reply = self._ask(seat, one, "profile", case=one.case.id)
        one.state.tables |= reply.tables
        one.state.missing |= reply.missing

    # ---- asking ----------------------------------------------------------------------------------

    def _begin(self, one: Timed, op: str) -> None:
        self.op = op
        one.state.begin()
        self.runtime.listener.running(one.case.id, op)

    def _limit_s(self, state: CaseState) -> float:
        return self.spec.timeout_s * (COMPILE_TIMES if state.compiles else 1)

    def _ask(self, seat: Seat, one: Timed, op: str, more_s: float = 0.0, **fields: Any) -> Any:
        """One step. Raises CaseEnded, WorkerFailure, Interrupted."""
        self._begin(one, op)
        worker = self.runtime.pool.worker(seat)
        return worker.ask(op, self._limit_s(one.state) + more_s, **fields)

    def _try(self, seat: Seat, one: Timed, step: Callable[[Seat, Timed], None]) -> Alive:
        """One step of what is timed; if it fails, the record of its case."""
        since, state, pool = time.monotonic(), one.state, self.runtime.pool
        alive = True
        try:
            step(seat, one)
        except CaseEnded as end:
            state.fields |= end.fields
            failed: tuple[Any, ...] = (end.status, end.reason, end.phase, end.log_tail)
            if self.spec.device == "cuda" and end.status is Status.ERROR:
                pool.dismiss(seat)  # after some errors every further call fails
                alive = False
        except WorkerFailure as failure:
            launch = hanging_launch(pool.pid_of(seat))
            tail = pool.dismiss(seat) or failure.log_tail
            alive = False
            reason = failure.reason
            if failure.status is Status.TIMEOUT:
                reason = (
                    f"more than {self._limit_s(state):g} s in one step{launch}; raise it with"
                    " --timeout, or make the case smaller"
                )
            failed = (failure.status, reason, PHASES.get(self.op, ""), tail)
        else:
            state.spent_s += time.monotonic() - since
            return True
        state.spent_s += time.monotonic() - since
        self.sampler.drop(one.name)
        del self.timed[one.name]
        if not one.is_row:
            state.beside = None
            return alive
        self.timed = {name: other for name, other in self.timed.items() if other.state is not state}
        for name in list(self.sampler.samplings):
            if name not in self.timed:
                self.sampler.drop(name)
        del self.states[one.name]
        yield self._record(state, *failed)
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
            if "utilization" in self.spec.measure and state.windows:
                tier = tier_of(state.windows, self.spec.device, self.spec.peaks)
                values |= {"utilization_tier": tier}
        judged = {"judged": state.judged or None, **state.repeats()}
        return self.runtime.record(state.case, status, reason, **state.fields | values | judged)

    def _beside(self, state: CaseState) -> dict[str, Any]:
        """The samples of the baseline that was timed beside it."""
        for name, one in self.timed.items():
            if one.state is state and not one.is_row:
                sampling = self.sampler.samplings.get(name)
                if sampling is not None and sampling.block_ms:
                    return {"beside": state.beside, "beside_ms": sampling.block_ms}
        return {}

    def _impossible(self, state: CaseState, samples: dict[str, Any]) -> str:
        """Why the device cannot have done the work in this time; "" if it can."""
        row = {**samples, "exactness": state.fields.get("exactness")}
        shortest = state.fields.get("shortest_call_ms")
        return refutation(state.case.problem, row, self.spec.physical_device, shortest)
