"""A run on this machine: its device, locked, with workers in each environment, and the run from its
first case to its last, every row on disk at once.
"""

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..cases.case import Case, Group
from ..machine.load import LoadMeter, busy_text
from ..process.signals import RESUME, Signals
from ..process.worker_process import ANSWER_S, Interrupted, signal_name
from ..rows.record import Planned, Status
from ..studies import takes
from ..studies.attachments import refuse_problems
from .device_run import DeviceRun
from .engine import RunOptions, Wanted
from .environments import (
    Change,
    Environments,
    Workers,
    changes,
    environments_of,
    first_of,
    first_workers,
    lock_device,
)
from .run_rows import RunPlan, RunResult, RunRows
from .schedule import schedule_parts
from .studies import Told, tried
from .worker_pool import RunConfig, WorkerPool

HINT = "continue with attnbench run --resume"


@dataclass(frozen=True, slots=True)
class Here:
    """The engine of a run that names no other. `advice`: to who ends it at once, see Signals."""

    advice: str = RESUME

    @contextmanager
    def open(self, wanted: Wanted, options: RunOptions) -> Iterator["DeviceHere"]:
        """With signals under control. Raises Refusal."""
        pythons, held, load = wanted.interpreters, options.held_device, LoadMeter()
        with (
            Signals(self.advice, embedded=options.embedded) as signals,
            first_workers(
                wanted.device, signals, pythons, allow_import=options.allow_import
            ) as workers,
            lock_device(first_of(workers), signals, wait=options.wait, held_device=held),
        ):
            yield DeviceHere(wanted, workers, signals, load)


@dataclass(frozen=True, slots=True)
class DeviceHere:
    """The one device. `workers`: the first of each environment. `load`: since it was opened."""

    wanted: Wanted
    workers: Workers
    signals: Signals
    load: LoadMeter
    listed: Sequence[Mapping[str, Any]] = ()

    @property
    def device(self) -> str:
        return str(first_of(self.workers).ready["device"])

    @property
    def environments(self) -> Environments:
        return environments_of(self.workers)

    @property
    def free_bytes(self) -> int:
        answer = first_of(self.workers).ask({"op": "free"}, "free", ANSWER_S)
        return int(answer["available_bytes"])

    def changes(self, meta: Mapping[str, Any]) -> list[Change]:
        return changes(meta, self.environments)

    def attach(self, budget_bytes: int) -> tuple[Mapping[str, Told], list[str]]:
        """Raises BadInput, WorkerFailure, Interrupted."""
        some, pythons = self.wanted.attachments, self.wanted.interpreters
        attached = {one.name: (one.study, one.request()) for one in some}
        found = tried(attached, self.device, budget_bytes, pythons, self.signals)
        refuse_problems(found.problems, [takes(one.study) for one in some])
        return {name: told for name, (_, told) in attached.items()}, found.remarks

    def warnings(self, left: Sequence[Planned], config: RunConfig) -> list[str]:
        timed = "latency" in config.measure and any(isinstance(one, Case) for one in left)
        text = busy_text(self.load.busy(), processes=config.plan.processes if timed else 0)
        return [text] if text and config.device == "cpu" else []

    def measure(self, plan: RunPlan) -> RunRows:
        with open_session(plan, self.workers, self.signals) as session:
            session.complete()
        return session.rows


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
        heard, wake_fd = plan.listener, signals.wake_fd
        self._device = DeviceRun(
            config, workers, folder, wake_fd, plan.attempts, heard.running, heard.steps
        )
        signals.second = lambda: self.pool.close(at_once=True)

    @property
    def result(self) -> RunResult:
        return self.rows.result

    @property
    def pool(self) -> WorkerPool:
        return self._device.pool

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
