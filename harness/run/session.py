"""A run from its first case to its last: what is measured when, every row on disk at once."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..cases.case import Group
from ..process.death import signal_name
from ..process.signals import Signals
from ..process.worker_process import Interrupted
from ..rows.record import Status
from .device_run import DeviceRun
from .environments import Workers
from .run_rows import RunPlan, RunResult, RunRows
from .schedule import schedule_parts
from .worker_pool import WorkerPool

HINT = "continue with attnbench run --resume"


@contextmanager
def open_session(plan: RunPlan, workers: Workers, signals: Signals) -> Iterator["RunSession"]:
    """A run from begin to end. If a signal ends it, what has no row yet gets one."""
    session = RunSession(plan, workers, signals)
    try:
        yield session
        session.pool.close()
    except Interrupted:
        session.result.signal = signals.received
        session.stop(f"stopped by {signal_name(signals.received or signal.SIGINT)}")
    finally:
        session.close()
    session.report_losses()


class RunSession:
    """The steps of a run: `begin`, `measure` for each part of the schedule, walls, studies.

    Each step raises Interrupted if a signal has come.
    """

    def __init__(self, plan: RunPlan, workers: Workers, signals: Signals) -> None:
        """`workers`: the first worker of each environment."""
        config, folder = plan.config, plan.store.path
        self.plan = plan
        self.signals = signals
        self.parts = tuple(schedule_parts(plan.units.groups, config.plan))
        self.rows = RunRows(plan)
        self._device = DeviceRun(
            config, workers, folder, signals.wake_fd, plan.attempts, plan.listener.running
        )
        signals.second = lambda: self.pool.close(at_once=True)

    @property
    def result(self) -> RunResult:
        return self.rows.result

    @property
    def pool(self) -> WorkerPool:
        return self._device.pool

    @property
    def is_finished(self) -> bool:
        """Everything planned was tried to the end, and something was planned."""
        return self.rows.is_finished

    def begin(self) -> None:
        self._device.begin()
        self.rows.begin()

    def complete(self) -> None:
        """The whole run."""
        self.begin()
        for part in self.parts:
            self.measure(part)
        if self.parts:
            self.pool.close()  # walls are searched in processes that nothing else has used
        for record in self._device.apart(self.plan.units, self.plan.listener.predicted):
            self.rows.keep(record)
            self.signals.check()

    def measure(self, part: Sequence[Group]) -> None:
        """Measure the groups of one part of the schedule."""
        for record in self._device.groups(part):
            self.rows.keep(record)
        self.signals.check()

    def stop(self, why: str) -> None:
        """End early: what was being measured and what was not reached get rows that say so."""
        if not self.rows.left:
            return
        unfinished = self._device.unfinished(Status.INTERRUPTED, f"{why}; {HINT}")
        self.pool.close(at_once=True)
        self.rows.keep(*unfinished)
        self.rows.not_reached(f"{why}; {HINT}")

    def close(self) -> None:
        self._device.close()
        self.plan.store.close()

    def report_losses(self) -> None:
        for loss in self._device.losses:
            self.plan.listener.remark(loss)
