"""A run on this machine: its device, locked, with its workers, and the run from its first case to
its last, every row on disk at once.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

from ..devices.load import LoadMeter, busy_text
from ..process.device_lock import device_lock
from ..process.signals import Signals
from ..process.worker_process import ANSWER_S, Interrupted, signal_name
from ..rows.record import Record, Status
from ..rows.run_files import Document
from ..rows.run_store import LOGS
from ..scenario import Plan
from ..scenario.shards import Units
from ..studies import takes
from ..studies.attachments import Attachment, refuse_problems
from .engine import Environment, RunOptions, measured_on
from .run_rows import RunRows
from .schedule import Schedule, schedule_parts
from .studies import StudyRunner, tried
from .wall_runner import WallRunner
from .worker_pool import Runtime, WorkerPool, open_workers

LOST_LOGS = "logs are incomplete"
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
        device_lock(pool.lock_name, wait=options.wait, check=signals.check, held=held),
    ):
        yield DeviceHere(pool, signals, load, attachments)


@dataclass(frozen=True, slots=True)
class DeviceHere:
    """The one device. `load`: since it was opened."""

    pool: WorkerPool
    signals: Signals
    load: LoadMeter
    attachments: Sequence[Attachment]

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

    def attach(self, budget_bytes: int) -> None:
        """Raises BadInput, WorkerFailure, Interrupted."""
        attached = {one.name: (one.study, one.request()) for one in self.attachments}
        problems = tried(attached, self.environment["device"], budget_bytes, self.signals)
        refuse_problems(problems, [takes(one.study) for one in self.attachments])

    def measure(self, rows: RunRows) -> None:
        """The whole run. If a signal ends it, what has no row yet gets one."""
        spec, path, pool = rows.spec, rows.store.path, self.pool
        self.signals.second = lambda: pool.close(at_once=True)
        runtime = Runtime(
            spec=spec,
            pool=pool,
            listener=rows.listener,
            measured_on=measured_on(self.environment),
            attached={one.name: one.request() for one in self.attachments},
            attempts=rows.attempts,
        )
        runners = Schedule(runtime), WallRunner(runtime), StudyRunner(runtime)
        try:
            pool.configure(spec, path / LOGS)
            self._begin(rows)
            for record in self._records(rows.units, spec.how.plan, *runners):
                rows.keep(record)
            pool.close()
        except Interrupted:
            rows.result.signal = number = self.signals.received or signal.SIGINT
            if rows.left:
                why = f"stopped by {signal_name(number)}; {HINT}"
                begun = [runner.unfinished(Status.INTERRUPTED, why) for runner in runners]
                pool.close(at_once=True)
                rows.keep(*chain.from_iterable(begun))
                rows.not_reached(why, runtime.measured_on)
        finally:
            rows.store.close()
        for failure in pool.log_failures[:1]:
            rows.listener.remark(f"{LOST_LOGS}: {failure}")

    def _begin(self, rows: RunRows) -> None:
        timed = rows.units.groups and "latency" in rows.spec.how.measure
        busy = busy_text(self.load.busy(), processes=rows.spec.how.plan.processes if timed else 0)
        if busy and rows.spec.device == "cpu":
            rows.remarks.append(busy)
        rows.begin()

    def _records(
        self, units: Units, plan: Plan, schedule: Schedule, walls: WallRunner, studies: StudyRunner
    ) -> Iterator[Record]:
        """Every row as soon as it is final. Raises Interrupted."""
        for part in schedule_parts(units.groups, plan):
            yield from schedule.records([group.cases for group in part])
            self.signals.check()
        if units.groups:
            self.pool.close()  # walls are searched in processes that nothing else has used
        for record in chain(walls.records(units.walls), studies.records(units.studies)):
            yield record
            self.signals.check()
