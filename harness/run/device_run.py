"""Everything that is measured on one device of this host: its workers, and what they are asked.

session.py has one, in the process of the run. A run on several devices has one per device, each in
a process there (node_device.py).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..cases.case import Group
from ..process.worker_process import WorkerProcess
from ..rows.record import Record, Status
from ..scenario.shards import Units
from ..store.run_store import LOGS
from .schedule import Schedule
from .studies import StudyRunner
from .wall_runner import WallRunner
from .worker_pool import RunConfig, RunContext, WorkerPool

Predicted = Callable[[Sequence[tuple[str, Mapping[str, Any]]], float], None]


class DeviceRun:
    """From what is planned to records, one after the other. `pool` has the workers.

    Each step raises Interrupted if a signal has come.
    """

    def __init__(
        self,
        config: RunConfig,
        worker: WorkerProcess,
        folder: Path,
        wake_fd: int | None,
        attempts: Mapping[str, int],
        running: Callable[[str, str], None],
        steps: Callable[[str, int], None] = lambda *_: None,
    ) -> None:
        """`worker`: the first one. `folder`: for logs."""
        self.pool = WorkerPool(config, folder / LOGS, wake_fd)
        self._worker = worker
        context = RunContext(
            config=config,
            pool=self.pool,
            attempts=attempts,
            running=running,
            steps=steps,
        )
        self._schedule = Schedule(context)
        self._walls = WallRunner(context)
        self._studies = StudyRunner(context)

    def begin(self) -> None:
        """Configure the first worker; another is started in place of one that has ended."""
        if self._worker.exit_code is None:
            self.pool.adopt(self._worker)

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

    def close(self) -> None:
        self.pool.close(at_once=True)

    @property
    def losses(self) -> list[str]:
        """What the run's files lack though nothing failed, for the user."""
        logs = self.pool.log_failure
        return [f"logs lack some of what workers printed: {logs}"] if logs else []
