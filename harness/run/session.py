"""A run on this machine: its device, locked, with its first worker, and the run from its first case
to its last, every row on disk at once.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain

from ..cases.case import Group
from ..devices.load import LoadMeter, busy_text
from ..process.device_lock import device_lock
from ..process.signals import Signals
from ..process.worker_process import ANSWER_S, Interrupted, WorkerProcess, signal_name
from ..rows.record import Status
from ..rows.run_files import Document
from ..rows.run_store import LOGS
from ..studies import takes
from ..studies.attachments import Attachment, refuse_problems
from .engine import RunOptions
from .environments import Environment, measured_on
from .run_rows import RunResult, RunRows
from .runtime import Runtime
from .schedule import Schedule, schedule_parts
from .studies import MODELS, StudyRunner, tried
from .wall_runner import WallRunner
from .worker_pool import WorkerPool, open_workers

LOST_LOGS = "logs lack some of what workers printed"
HINT = "continue with attnbench run --resume"


@contextmanager
def open_here(
    device: str, attachments: Sequence[Attachment], options: RunOptions
) -> Iterator["DeviceHere"]:
    """This machine's device, with signals under control. Raises Refusal."""
    held, load = options.held_device, LoadMeter()
    with (
        Signals(embedded=options.embedded) as signals,
        open_workers(device, signals, allow_import=options.allow_import) as pool,
        lock_device(pool.first, signals, wait=options.wait, held_device=held),
    ):
        yield DeviceHere(pool, signals, load, attachments, options)


def lock_device(
    worker: WorkerProcess, signals: Signals, *, wait: bool, held_device: str | None = None
) -> AbstractContextManager[None]:
    """The lock of the device that the worker uses, unless the caller holds it already."""
    device = worker.ready.environment.device_uuid or worker.ready.device
    if device == held_device:
        return nullcontext()
    return device_lock(device, wait=wait, check=signals.check)


@dataclass(frozen=True, slots=True)
class DeviceHere:
    """The one device. `load`: since it was opened."""

    pool: WorkerPool
    signals: Signals
    load: LoadMeter
    attachments: Sequence[Attachment]
    options: RunOptions

    @property
    def environment(self) -> Environment:
        found: Environment = self.pool.first.ready.environment.model_dump()
        return found

    @property
    def free_bytes(self) -> int:
        return int(self.pool.first.ask("free", ANSWER_S).available_bytes)

    @property
    def listed(self) -> list[Document]:
        return []

    def attach(self, budget_bytes: int) -> list[str]:
        """Raises BadInput, WorkerFailure, Interrupted."""
        attached = {one.name: (one.study, one.request()) for one in self.attachments}
        found = tried(attached, self.environment["device"], budget_bytes, self.signals)
        refuse_problems(found.problems, [takes(one.study) for one in self.attachments])
        return found.remarks

    def measure(self, rows: RunRows) -> None:
        with open_session(rows, self) as session:
            session.complete()


@contextmanager
def open_session(rows: RunRows, here: DeviceHere) -> Iterator["RunSession"]:
    """A run from begin to end. If a signal ends it, what has no row yet gets one."""
    session, signals = RunSession(rows, here), here.signals
    try:
        yield session
        session.pool.close()
    except Interrupted:
        session.result.signal = signals.received
        session.stop(f"stopped by {signal_name(signals.received or signal.SIGINT)}")
    finally:
        rows.store.close()
    session.report_losses()


class RunSession:
    """The steps of a run: `begin`, `measure` for each part of the schedule, walls, studies.

    Each step raises Interrupted if a signal has come.
    """

    def __init__(self, rows: RunRows, here: DeviceHere) -> None:
        spec, path = rows.spec, rows.store.path
        self.rows = rows
        self.here = here
        self.signals = here.signals
        self.parts = tuple(schedule_parts(rows.units.groups, spec.how.plan))
        self.pool = here.pool
        self.runtime = Runtime(
            spec=spec,
            pool=self.pool,
            listener=rows.listener,
            measured_on=measured_on(here.environment),
            attached={one.name: one.request() for one in here.attachments},
            save_to=path.resolve() / MODELS if spec.how.save_models else None,
            attempts=rows.attempts,
        )
        self._schedule = Schedule(self.runtime)
        self._walls = WallRunner(self.runtime)
        self._studies = StudyRunner(self.runtime)
        here.signals.second = lambda: self.pool.close(at_once=True)

    @property
    def result(self) -> RunResult:
        return self.rows.result

    def begin(self) -> None:
        self.pool.configure(self.rows.spec, self.rows.store.path / LOGS)
        spec, cases = self.rows.spec, self.rows.units.groups
        processes = spec.how.plan.processes if cases and "latency" in spec.how.measure else 0
        busy = busy_text(self.here.load.busy(), processes=processes)
        if busy and spec.device == "cpu":
            self.rows.remarks.append(busy)
        self.rows.begin()

    def complete(self) -> None:
        """The whole run."""
        self.begin()
        for part in self.parts:
            self.measure(part)
        if self.parts:
            self.pool.close()  # walls are searched in processes that nothing else has used
        units = self.rows.units
        apart = (self._walls.records(units.walls), self._studies.records(units.studies))
        for record in chain(*apart):
            self.rows.keep(record)
            self.signals.check()

    def measure(self, part: Sequence[Group]) -> None:
        """Measure the groups of one part of the schedule."""
        for record in self._schedule.records([group.cases for group in part]):
            self.rows.keep(record)
        self.signals.check()

    def stop(self, why: str) -> None:
        """End early: what was being measured and what was not reached get rows that say so."""
        if not self.rows.left:
            return
        why = f"{why}; {HINT}"
        runners = (self._schedule, self._walls, self._studies)
        begun = [one for some in runners for one in some.unfinished(Status.INTERRUPTED, why)]
        self.pool.close(at_once=True)
        self.rows.keep(*begun)
        self.rows.not_reached(why, self.runtime.measured_on)

    def report_losses(self) -> None:
        for failure in self.pool.log_failures[:1]:
            self.rows.listener.remark(f"{LOST_LOGS}: {failure}")
