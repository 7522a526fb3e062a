"""A run under way, step by step: laps of cases, walls, studies; every row on disk as soon as it is
final, and an orderly end.
"""

import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from ..cases import Case, Group, Planned, Wall
from ..costs import known
from ..process.signals import Signals
from ..process.worker_process import Interrupted
from ..record import FAILURES, Record, Status, StudyRecord, WallRecord
from ..store import LOGS, Store
from ..telemetry.timeline import Timeline
from .environments import Workers, first_of
from .group import Means
from .schedule import Lap, laps
from .studies import Inquiry
from .wall_runner import Hunt
from .worker_pool import Crew, Terms

AnyRecord = Record | WallRecord | StudyRecord


class Last(NamedTuple):
    """What counts of the rows that a run has already."""

    status: str
    attempt: int


class Listener(Protocol):
    """Is told how a run goes; prints, or keeps quiet."""

    def begin(
        self, path: Path, planned: Mapping[str, int], done: int, remarks: Sequence[str]
    ) -> None: ...

    def running(self, what: str, phase: str) -> None: ...

    def finished(self, record: AnyRecord) -> None: ...

    def remark(self, text: str) -> None: ...


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How a run ended. `signal` is the number of the signal that ended it early."""

    path: Path
    statuses: Counter[str] = field(default_factory=Counter)
    signal: int | None = None

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return 128 + self.signal
        return 1 if any(self.statuses[status] for status in FAILURES) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is left to measure, and where it goes. `last`: the rows that the run has already, by
    case, wall or study.
    """

    store: Store
    groups: tuple[Group, ...]
    walls: tuple[Wall, ...]
    studies: tuple[Planned, ...]
    terms: Terms
    remarks: Sequence[str]
    last: Mapping[str, Last] = field(default_factory=dict)


@contextmanager
def under_way(
    job: Job, workers: Workers, signals: Signals, listener: Listener
) -> Iterator["Course"]:
    """A run from its first step to its end. A signal ends it in order: what has no row yet gets
    one.
    """
    course = Course(job, workers, signals, listener)
    try:
        yield course
        course.crew.close()
    except Interrupted:
        course.outcome.signal = signals.received
        course.stop(f"stopped by {signal.Signals(signals.received or signal.SIGINT).name}")
    finally:
        course.close()
    course.tell_failure()


class Course:
    """The steps of a run: `begin`, then laps, walls and studies. Each raises Interrupted where a
    signal has come.
    """

    def __init__(self, job: Job, workers: Workers, signals: Signals, listener: Listener) -> None:
        """`workers`: those that were started before the terms were known, one per environment."""
        terms = job.terms
        self.job = job
        self.signals = signals
        self.laps = tuple(laps(job.groups, terms.plan))
        self.outcome = Outcome(path=job.store.path)
        self.crew = Crew(terms, job.store.path / LOGS, signals.wake_fd)
        signals.second = lambda: self.crew.close(at_once=True)
        self._workers = workers
        self._listener = listener
        self._attempts = {case: row.attempt for case, row in job.last.items()}
        self._timeline = Timeline(
            job.store.path, terms.gpu_uuid or first_of(workers).ready["environment"]["device_uuid"]
        )
        tell = listener.running
        self._lap = Lap(
            Means(
                terms=terms,
                crew=self.crew,
                attempts=self._attempts,
                running=tell,
                timeline=self._timeline,
            )
        )
        self._hunt = Hunt(terms, self.crew, self._attempts, tell)
        self._inquiry = Inquiry(terms, self.crew, self._attempts, tell)
        every: list[Case | Wall | Planned] = [
            *(case for group in job.groups for case in group.cases),
            *job.walls,
            *job.studies,
        ]
        self._left = {one.id: one for one in every}
        self.outcome.statuses.update(
            row.status for case, row in job.last.items() if case not in self._left
        )

    def begin(self) -> None:
        job = self.job
        done = self.outcome.statuses.total()
        cases = len(self._left) - len(job.walls) - len(job.studies) + done
        planned = {"cases": cases, "walls": len(job.walls), "studies": len(job.studies)}
        self._listener.begin(job.store.path, planned, done, job.remarks)
        for python, worker in self._workers.items():
            self.crew.adopt(worker, python)

    def complete(self) -> None:
        """The whole run."""
        self.begin()
        for together in self.laps:
            self.lap(together)
        if self.laps:
            self.crew.close()  # walls are looked for in processes that nothing else has used
        for wall in self.job.walls:
            self._keep(self._hunt.record(wall))
            self.signals.check()
        for study in self.job.studies:
            self._keep(self._inquiry.record(study))
            self.signals.check()

    def lap(self, together: Sequence[Group]) -> None:
        """Groups that are measured together: one of `laps`."""
        for record in self._lap.records([group.cases for group in together]):
            self._keep(record)
        self.signals.check()

    def stop(self, why: str) -> None:
        """End early: a row that says so for what was under way, and for what was never reached."""
        if not self._left:
            return
        again = "attnbench run --resume takes it up again"
        stopped = Status.INTERRUPTED, f"{why}; {again}"
        unfinished: list[AnyRecord] = [
            *self._lap.unfinished(*stopped),
            *self._hunt.unfinished(*stopped),
            *self._inquiry.unfinished(*stopped),
        ]
        self.crew.close(at_once=True)
        self._keep(*unfinished)
        never = tuple(self._left.values())
        self.job.store.append(
            self._not_reached(one, f"not reached: {why}; {again}").row() for one in never
        )
        self._left.clear()
        self.outcome.statuses[Status.INTERRUPTED] += len(never)

    def close(self) -> None:
        self.crew.close(at_once=True)
        self._timeline.close()
        self.job.store.close()

    def tell_failure(self) -> None:
        if self._timeline.failure:
            self._listener.remark(
                f"there is no timeline from some point on: {self._timeline.failure}"
            )

    def _keep(self, *records: AnyRecord) -> None:
        self.job.store.append(record.row() for record in records)
        for record in records:
            self._left.pop(record.id, None)
            self.outcome.statuses[record.status] += 1
            self._listener.finished(record)

    def _not_reached(self, one: Case | Wall | Planned, reason: str) -> AnyRecord:
        terms = self.job.terms
        attempt, status, device = (
            self._attempts.get(one.id, 0) + 1,
            Status.INTERRUPTED,
            terms.device,
        )
        if isinstance(one, Wall):
            return WallRecord(
                wall=one,
                device=device,
                attempt=attempt,
                status=status,
                reason=reason,
                memory_bytes=terms.budget_bytes,
            )
        if isinstance(one, Planned):
            return StudyRecord(
                planned=one, device=device, attempt=attempt, status=status, reason=reason
            )
        return Record(
            case=one,
            device=device,
            attempt=attempt,
            status=status,
            reason=reason,
            **known(one.problem),
        )
