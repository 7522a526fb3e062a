"""A run from its first case to its last: what is measured when, every row on disk at once."""

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from ..cases import Case, Group, PlannedStudy, Wall
from ..costs import known_costs
from ..expected_time import Forecast
from ..listener import Listener
from ..process.signals import Signals
from ..process.worker_process import ANSWER_S, Interrupted, WorkerFailure
from ..record import FAILURES, Planned, Record, Status
from ..scenario import Plan
from ..store import LOGS, Store
from ..telemetry.timeline import Timeline
from .environments import Workers, first_of
from .forecast import dtypes_of, forecast, foreseen_of, pace_of
from .group import GroupRun, WorkerLost
from .studies import StudyRunner
from .wall_runner import WallRunner
from .worker_pool import RunConfig, RunContext, WorkerPool

MAX_CASES = 24
"""Of one part of the schedule: a killed run loses at most this many unfinished cases."""
MOST_FORESEEN = 1000  # cases that a worker is asked about before a run


class PreviousRow(NamedTuple):
    """The row that counts, of a run that is resumed."""

    status: str
    attempt: int


@dataclass(slots=True, kw_only=True)
class RunResult:
    """How a run ended. `signal`: the number of the signal that ended it early."""

    path: Path
    statuses: Counter[str] = field(default_factory=Counter)
    signal: int | None = None

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return 128 + self.signal
        return 1 if any(self.statuses[status] for status in FAILURES) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What is left to measure, and where the rows go. `previous`: the rows of a resumed run."""

    store: Store
    config: RunConfig
    listener: Listener
    remarks: Sequence[str]
    previous: Mapping[str, PreviousRow]
    groups: tuple[Group, ...]
    walls: tuple[Wall, ...]
    studies: tuple[PlannedStudy, ...]


@contextmanager
def open_session(plan: RunPlan, workers: Workers, signals: Signals) -> Iterator["RunSession"]:
    """A run from begin to end. If a signal ends it, what has no row yet gets one."""
    session = RunSession(plan, workers, signals)
    try:
        yield session
        session.pool.close()
    except Interrupted:
        session.result.signal = signals.received
        name = signal.Signals(signals.received or signal.SIGINT).name
        session.stop(f"stopped by {name}")
    finally:
        session.close()
    session.report_telemetry()


class RunSession:
    """The steps of a run: `begin`, `measure` for each part of the schedule, walls, studies.

    Each step raises Interrupted if a signal has come.
    """

    def __init__(self, plan: RunPlan, workers: Workers, signals: Signals) -> None:
        """`workers`: the first worker of each environment."""
        config, listener = plan.config, plan.listener
        self.plan = plan
        self.signals = signals
        self.parts = tuple(schedule_parts(plan.groups, config.plan))
        self.result = RunResult(path=plan.store.path)
        self.pool = WorkerPool(config, plan.store.path / LOGS, signals.wake_fd)
        signals.second = lambda: self.pool.close(at_once=True)
        self._workers = workers
        gpu_uuid = config.gpu_uuid or first_of(workers).ready["environment"]["device_uuid"]
        self._timeline = Timeline(plan.store.path, gpu_uuid)
        self._context = context = RunContext(
            config=config,
            pool=self.pool,
            attempts={case: row.attempt for case, row in plan.previous.items()},
            running=listener.running,
            timeline=self._timeline,
        )
        self._schedule = Schedule(context)
        self._walls = WallRunner(context)
        self._studies = StudyRunner(context)
        cases = (case for group in plan.groups for case in group.cases)
        planned: list[Planned] = [*cases, *plan.walls, *plan.studies]
        self._left = {one.id: one for one in planned}
        done = (row.status for case, row in plan.previous.items() if case not in self._left)
        self.result.statuses.update(done)

    @property
    def is_finished(self) -> bool:
        """Everything planned was tried to the end, and something was planned."""
        statuses = self.result.statuses
        return not self._left and bool(statuses) and not statuses[Status.INTERRUPTED]

    def begin(self) -> None:
        plan, done = self.plan, self.result.statuses.total()
        walls, studies = len(plan.walls), len(plan.studies)
        cases = len(self._left) - walls - studies + done
        planned = {"cases": cases, "walls": walls, "studies": studies}
        for python, worker in self._workers.items():
            self.pool.adopt(worker, python)
        expected = self._forecast()
        remarks = [*plan.remarks, *(expected.remarks if expected else ())]
        plan.listener.begin(plan.store.path, planned, done, remarks)
        if expected:
            plan.listener.expects(expected)

    def complete(self) -> None:
        """The whole run."""
        self.begin()
        for part in self.parts:
            self.measure(part)
        if self.parts:
            self.pool.close()  # walls are searched in processes that nothing else has used
        if self.plan.walls:
            since = time.monotonic()
            predicted = self._walls.predict(self.plan.walls)
            named = [(wall.id, fields) for wall, fields in predicted]
            self.plan.listener.predicted(named, time.monotonic() - since)
        for wall in self._walls.in_order(self.plan.walls):
            self._keep(self._walls.record(wall))
            self.signals.check()
        for study in self.plan.studies:
            self._keep(self._studies.record(study))
            self.signals.check()

    def measure(self, part: Sequence[Group]) -> None:
        """Measure the groups of one part of the schedule."""
        for record in self._schedule.records([group.cases for group in part]):
            self._keep(record)
        self.signals.check()

    def stop(self, why: str) -> None:
        """End early: what was being measured and what was not reached get rows that say so."""
        if not self._left:
            return
        status, hint = Status.INTERRUPTED, "continue with attnbench run --resume"
        runners = (self._schedule, self._walls, self._studies)
        unfinished = [
            record for runner in runners for record in runner.unfinished(status, f"{why}; {hint}")
        ]
        self.pool.close(at_once=True)
        self._keep(*unfinished)
        reason = f"not reached: {why}; {hint}"
        left = tuple(self._left.values())
        self.plan.store.append(self._not_reached(one, reason).row() for one in left)
        self._left.clear()
        self.result.statuses[status] += len(left)

    def close(self) -> None:
        self.pool.close(at_once=True)
        self._timeline.close()
        self.plan.store.close()

    def report_telemetry(self) -> None:
        if self._timeline.failure:
            reason = f"the timeline ends early: {self._timeline.failure}"
            self.plan.listener.remark(reason)

    def _forecast(self) -> Forecast | None:
        """How long the rest will take; None if the worker cannot say how fast this machine is."""
        left, python = list(self._left.values()), next(iter(self._workers))
        cases = [one for one in left if isinstance(one, Case)]
        walls = [one for one in left if isinstance(one, Wall)]
        request = {
            "op": "foresee",
            "dtypes": dtypes_of(left),
            "cases": [case.fields() for case in cases[:MOST_FORESEEN]],
            "walls": [wall.fields() for wall in walls[:MOST_FORESEEN]],
        }
        try:
            found = self.pool.worker(0, python).ask(request, "foreseen", ANSWER_S)
        except WorkerFailure:
            self.pool.dismiss(0, python)
            return None
        pace, foreseen = pace_of(found["pace"]), foreseen_of(found["cases"])
        return forecast(left, self.plan.config, pace, foreseen, found["walls"])

    def _keep(self, *records: Record) -> None:
        self.plan.store.append(record.row() for record in records)
        for record in records:
            self._left.pop(record.id, None)
            self.result.statuses[record.status] += 1
            self.plan.listener.finished(record)

    def _not_reached(self, one: Planned, reason: str) -> Record:
        values = {}
        if isinstance(one, Case):
            values = known_costs(one.problem)
        elif isinstance(one, Wall):
            values = self._walls.known()
        return self._context.record(one, Status.INTERRUPTED, reason, **values)


def schedule_parts(groups: Iterable[Group], plan: Plan) -> Iterator[tuple[Group, ...]]:
    """Split the groups into parts that are measured together, in order.

    With one process there is nothing to spread over time, and every group is a part.
    """
    part: list[Group] = []
    for group in groups:
        cases = sum(len(one.cases) for one in [*part, group])
        if part and (plan.processes == 1 or cases > MAX_CASES):
            yield tuple(part)
            part = []
        part.append(group)
    if part:
        yield tuple(part)


class Schedule:
    """Measures groups together: each process measures all of them before the next process does.

    A machine's speed drifts over seconds to minutes (a neighbour on the same host, heat). Blocks of
    a group that directly follow each other would share one level of drift, agree with each other,
    and miss the next level. Spread over time they see several, so the interval between processes
    includes the drift.
    """

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.runs: list[GroupRun] = []

    def records(self, groups: Iterable[Sequence[Case]]) -> Iterator[Record]:
        """Each record as soon as it is final."""
        self.runs = [GroupRun(self.context, cases) for cases in groups]
        yield from self._measured(list(self.runs))
        retried = [(run, case) for run in self.runs for case in run.retry_alone]
        for run, case in retried:
            self.context.pool.close()  # alone also means: in a process that nothing else has used
            alone = GroupRun(self.context, [case], alone=True)
            self.runs.append(alone)
            run.retry_alone.remove(case)
            yield from self._measured([alone])

    def unfinished(self, status: Status, reason: str) -> Iterator[Record]:
        """Records of the cases that were being measured when the run was stopped."""
        for run in self.runs:
            yield from run.unfinished(status, reason)

    def _measured(self, runs: list[GroupRun]) -> Iterator[Record]:
        for run in runs:
            yield from self._step(run, run.check)
        order = Random(self.context.config.seed)
        while runs:
            measured = set()
            for process in range(self.context.config.plan.processes):
                order.shuffle(runs)  # no group always follows the same one
                for run in runs:
                    if run.needs_blocks(process):
                        measured.add(run)
                        yield from self._step(run, partial(run.sample, process))
            for run in [run for run in runs if run not in measured]:
                runs.remove(run)
                yield from self._watched(run)
                yield from run.finish()

    def _watched(self, run: GroupRun) -> Iterator[Record]:
        """The windows of a group; a case that loses the worker here costs the others nothing."""
        while True:
            try:
                yield from run.watch()
            except WorkerLost as lost:
                yield from run.fail_case(lost)
            else:
                return

    def _step(self, run: GroupRun, step: Callable[[], Iterator[Record]]) -> Iterator[Record]:
        """One step; if it loses the worker, the group starts again without the failed case."""
        try:
            yield from step()
        except WorkerLost as lost:
            yield from run.fail_case(lost)
            run.restart()
            if run.states:
                yield from self._step(run, run.check)
