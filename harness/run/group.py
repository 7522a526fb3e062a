"""One group of cases: its steps, which ask workers (requests.py) until each case has a record.

schedule.py decides in which order groups and processes are measured.
"""

import random
import secrets
from collections.abc import Iterator, Sequence

from ..cases.case import Case, reported_pairs
from ..cases.costs import known_costs
from ..rows.plans import FEWEST_UNITS
from ..rows.record import Record, Status
from .case_state import CaseState
from .requests import Requests, WorkerLost
from .runtime import Runtime
from .sampling import Sampler


class GroupRun:
    """The steps of one group: check, sample per process, watch, finish.

    A step yields the records of the cases that ended in it. It raises WorkerLost if it loses its
    worker; `fail_case` and `restart` follow then. `alone`: nothing else is measured in the same
    process. `number`: of the group in its schedule. `retry_alone` collects the cases that must be
    tried again alone.
    """

    def __init__(
        self, context: Runtime, cases: Sequence[Case], *, number: int = 0, alone: bool = False
    ) -> None:
        self.context = context
        self.config = context.spec
        self.number = number
        self.alone = alone
        self.retry_alone: list[Case] = []
        # Nobody knows before; one of those that measure a case however long its calls are.
        self.confirmed_in = secrets.randbelow(min(FEWEST_UNITS, self.config.plan.processes))
        self.order = random.Random(f"{self.config.seed} {cases[0].id if cases else ''}")
        self._start(cases)

    def _start(self, cases: Sequence[Case]) -> None:
        self.requests = Requests(self.context, cases, None if self.alone else self.retry_alone)
        self.states = self.requests.states  # of the cases without a record
        self.sampler = self.requests.sampler

    # ---- steps -----------------------------------------------------------------------------------

    def check(self) -> Iterator[Record]:
        """Preflight, correctness and memory of every case, in the first worker."""
        yield from self.requests.ask_each(0, "check", list(self.states))
        for name, state in self.states.items():
            state.checked = True
            self.context.listener.steps(name, 1)
        if "latency" in self.config.measure:
            cases = [state.case for state in self.states.values()]
            pairs = reported_pairs(cases, self.config.baseline, self.config.contrast)
            self.sampler = self.requests.sampler = Sampler(self.config.plan, self.states, pairs)

    def needs_blocks(self, process: int) -> bool:
        return bool(self.sampler.wanting(process))

    def sample(self, process: int) -> Iterator[Record]:
        """The blocks that this process still lacks before the next look at the precision."""
        names = self.sampler.wanting(process)
        yield from self.requests.ask_each(process, "warm_up", names)
        while wanting := self.sampler.wanting(process):
            self.order.shuffle(wanting)
            calls = self.sampler.calls(wanting, self.config.device)
            yield from self.requests.ask(process, "sample", wanting, {"calls": calls})
        if process == self.confirmed_in:
            yield from self.requests.ask_each(process, "confirm", names)
        yield from self.requests.ask(process, "release", [])

    def watch(self) -> Iterator[Record]:
        """Windows under the device's counters, spread over the processes; then profiles.

        Can be repeated after it lost a worker: windows that were taken are kept.
        """
        config = self.config
        watched = [n for n, state in self.states.items() if config.watches(state.case.problem)]
        for repeat in range(config.windows):
            names = [n for n in watched if n in self.states and self.states[n].watched == repeat]
            if not names:
                continue
            # with one window per case, groups take turns
            process = (self.number + repeat) % config.plan.processes
            yield from self.requests.ask_each(process, "warm_up", names)
            self.order.shuffle(names)
            for name in names:
                for mode in config.launch_modes:
                    if name in self.states:
                        yield from self._window(process, name, mode)
                if name in self.states:
                    self.states[name].watched += 1
            yield from self.requests.ask(process, "release", [])
        if config.profiles and (left := [n for n in watched if n in self.states]):
            yield from self._profile(left)

    def _profile(self, names: list[str]) -> Iterator[Record]:
        """Last: on a GPU the profiler (CUPTI) stays in its process, so another takes its place."""
        yield from self.requests.ask_each(0, "warm_up", names)
        yield from self.requests.ask_each(0, "profile_kernels", names)
        if self.config.device == "cuda":
            self.context.pool.dismiss(0)
        else:
            yield from self.requests.ask(0, "release", [])

    def _window(self, process: int, name: str, mode: str) -> Iterator[Record]:
        plan, measure = self.config.plan, self.config.measure
        more = {"measure": measure, "window_s": plan.window_s, "mode": mode}
        yield from self.requests.ask(process, "watch", [name], more)

    def finish(self) -> Iterator[Record]:
        """The records of the cases that did not fail."""
        self.sampler.finish()
        for name in list(self.states):
            state = self.states.pop(name)
            if complaint := state.verdicts.complaint:
                yield self.requests.record(state, Status.INCORRECT, complaint, "gate")
            elif complaint := state.clock_complaint or state.not_judged:
                yield self.requests.record(state, Status.ERROR, complaint, "latency")
            else:
                yield self.requests.record(state, Status.OK)

    def fail_case(self, lost: WorkerLost) -> Iterator[Record]:
        """The record of the case that lost the worker; of all cases, if we lost it.

        A case that shared the process is tried again alone instead: another may have broken it.
        """
        names = list(self.states) if lost.case_id is None else [lost.case_id]
        for name in filter(self.states.__contains__, names):
            self.sampler.drop(name)
            failure, state = lost.failure, self.states.pop(name)
            if lost.again and not self.alone:
                self.retry_alone.append(state.case)
                continue
            yield self.requests.record(
                state, failure.status, failure.reason, lost.phase, lost.log_tail
            )

    def restart(self) -> None:
        """Start the other cases from nothing: their samples were measured beside the failed one."""
        self._start([state.case for state in self.states.values()])

    def unfinished(self, status: Status, reason: str) -> Iterator[Record]:
        """Records of the cases that were being measured when the run was stopped."""
        retried = [CaseState(case=c, fields=known_costs(c.problem)) for c in self.retry_alone]
        for state in (*self.states.values(), *retried):
            yield self.requests.record(state, status, reason)
        self.states.clear()
        self.retry_alone.clear()
