"""A run on this machine: its device, locked, with its first worker, and the run from its first case
to its last, every row on disk at once.
"""

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..cases.case import Case, Group
from ..machine.load import LoadMeter, busy_text
from ..process.signals import RESUME, Signals
from ..process.worker_process import ANSWER_S, Interrupted, WorkerProcess, signal_name
from ..rows.record import Planned, Status
from ..studies import takes
from ..studies.attachments import refuse_problems
from .device_run import DeviceRun
from .engine import RunOptions, Wanted
from .first_worker import Change, Environment, changes, first_worker, lock_device
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
        held, load = options.held_device, LoadMeter()
        with (
            Signals(self.advice, embedded=options.embedded) as signals,
            first_worker(wanted.device, signals, allow_import=options.allow_import) as worker,
            lock_device(worker, signals, wait=options.wait, held_device=held),
        ):
            yield DeviceHere(wanted, worker, signals, load)


@dataclass(frozen=True, slots=True)
class DeviceHere:
    """The one device. `worker`: the first one. `load`: since it was opened."""

    wanted: Wanted
    worker: WorkerProcess
    signals: Signals
    load: LoadMeter
    listed: Sequence[Mapping[str, Any]] = ()

    @property
    def device(self) -> str:
        return str(self.worker.ready["device"])

    @property
    def environment(self) -> Environment:
        found: Environment = self.worker.ready["environment"]
        return found

    @property
    def free_bytes(self) -> int:
        answer = self.worker.ask({"op": "free"}, "free", ANSWER_S)
        return int(answer["available_bytes"])

    def changes(self, meta: Mapping[str, Any]) -> list[Change]:
        return changes(meta, self.environment)

    def attach(self, budget_bytes: int) -> tuple[Mapping[str, Told], list[str]]:
        """Raises BadInput, WorkerFailure, Interrupted."""
        some = self.wanted.attachments
        attached = {one.name: (one.study, one.request()) for one in some}
        found = tried(attached, self.device, budget_bytes, self.signals)
        refuse_problems(found.problems, [takes(one.study) for one in some])
        return {name: told for name, (_, told) in attached.items()}, found.remarks

    def warnings(self, left: Sequence[Planned], config: RunConfig) -> list[str]:
        timed = "latency" in config.measure and any(isinstance(one, Case) for one in left)
        text = busy_text(self.load.busy(), processes=config.plan.processes if timed else 0)
        return [text] if text and config.device == "cpu" else []

    def measure(self, plan: RunPlan) -> RunRows:
        with open_session(plan, self.worker, self.signals) as session:
            session.complete()
        return session.rows


@contextmanager
def open_session(plan: RunPlan, worker: WorkerProcess, signals: Signals) -> Iterator["RunSession"]:
    """A run from begin to end. If a signal ends it, what has no row yet gets one."""
    session = RunSession(plan, worker, signals)
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

    def __init__(self, plan: RunPlan, worker: WorkerProcess, signals: Signals) -> None:
        """`worker`: the first one."""
        config, folder = plan.config, plan.store.path
        self.plan = plan
        self.signals = signals
        self.parts = tuple(schedule_parts(plan.units.groups, config.plan))
        self.rows = RunRows(plan)
        heard, wake_fd = plan.listener, signals.wake_fd
        self._device = DeviceRun(
            config, worker, folder, wake_fd, plan.attempts, heard.running, heard.steps
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
