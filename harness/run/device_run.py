"""Everything that is measured on one device of this host.

session.py has one, in the process of the run. A run on several devices has one per device, each in
a process there (node_device.py).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..cases.case import Group
from ..process.worker_process import WorkerProcess
from ..rows.record import Record, Status
from ..scenario.shards import Units
from .runtime import Runtime
from .schedule import Schedule
from .studies import StudyRunner
from .wall_runner import WallRunner

Predicted = Callable[[Sequence[tuple[str, Mapping[str, Any]]], float], None]


class DeviceRun:
    """From what is planned to records, one after the other.

    Each step raises Interrupted if a signal has come.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.pool = runtime.pool
        self._schedule = Schedule(runtime)
        self._walls = WallRunner(runtime)
        self._studies = StudyRunner(runtime)

    def begin(self, worker: WorkerProcess) -> None:
        """Configure the first worker; another is started in place of one that has ended."""
        if worker.exit_code is None:
            self.pool.adopt(worker)

    def groups(self, part: Sequence[Group]) -> Iterator[Record]:
        """The groups of one part of the schedule, measured together."""
        return self._schedule.records([group.cases for group in part])

    def apart(self, units: Units, predicted: Predicted, share: float = 1.0) -> Iterator[Record]:
        """Walls, then studies. `predicted` hears what is known of walls, by id,
        before the first trial, and how long that took; `share`: of the time for walls.
        """
        if units.walls:
            since = time.monotonic()
            found = [(one.id, fields) for one, fields in self._walls.predict(units.walls, share)]
            predicted(found, time.monotonic() - since)
            yield from self._walls.records(units.walls)
        for study in units.studies:
            yield self._studies.record(study)

    def unfinished(self, status: Status, reason: str) -> list[Record]:
        """Records of what was being measured when the run was stopped."""
        runners = (self._schedule, self._walls, self._studies)
        return [record for runner in runners for record in runner.unfinished(status, reason)]

    @property
    def losses(self) -> list[str]:
        """What the run's files lack though nothing failed, for the user."""
        logs = self.pool.log_failure
        return [f"logs lack some of what workers printed: {logs}"] if logs else []
