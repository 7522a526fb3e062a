"""The workers of a run: started when first needed, kept, replaced after a failure; and what else a
run has only while it is measured on one device.
"""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ..devices.nvml import has_gpu
from ..devices.this_device import NO_TORCH, no_device
from ..files.errors import EnvironmentUnmet, Stopped, option
from ..process import replies
from ..process.child import ALLOW_IMPORT, AllowImport
from ..process.fork_server import ForkServer
from ..process.signals import Signals
from ..process.worker_process import ANSWER_S, Interrupted, WorkerFailure, WorkerProcess
from ..rows.record import Planned, Record, Status
from .listener import Listener
from .spec import RunSpec

PROGRAM = "attnbench.harness.worker.serve"
JUDGE = "attnbench.harness.worker.judging"
CHECKS_LOG = "checks.log"


class Seat(NamedTuple):
    """Which worker: its process number, and the backend from outside that it is for, "" if it is
    shared by those of ours.
    """

    process: int
    backend: str = ""


FIRST = Seat(0)


def start_worker(
    device: str,
    wake_fd: int | None = None,
    *,
    allow_import: AllowImport = False,
    server: ForkServer | None = None,
) -> WorkerProcess:
    """A worker that is ready, a fork of `server` if there is one. `allow_import`: of user modules.

    Raises WorkerFailure and Interrupted.
    """
    folders = allow_import if isinstance(allow_import, tuple) else ()
    arguments = (device, *([ALLOW_IMPORT, *folders] if allow_import else ()))
    start = partial(WorkerProcess, PROGRAM, *arguments, wake_fd=wake_fd, server=server)
    worker = start()
    try:
        worker.wait_ready()
    except WorkerFailure as failure:
        if failure.status != Status.CRASHED or (worker.exit_code or 0) >= 0:
            raise
        worker = start()  # somebody killed it: that need not happen again
        worker.wait_ready()
    return worker


@contextmanager
def open_workers(
    wanted: str, signals: Signals, *, allow_import: AllowImport = False
) -> Iterator["WorkerPool"]:
    """A pool with its first worker, until the end. Raises Refusal if the machine lacks what is
    wanted.
    """
    if find_spec("torch") is None:
        raise EnvironmentUnmet(NO_TORCH)
    pool = WorkerPool(wanted, signals.wake_fd, allow_import)
    try:
        if why := pool.start().ready.why:
            found, instead = no_device(wanted, why), option("device", "cpu")
            raise EnvironmentUnmet(f"{found}; run with {instead}, or see attnbench doctor")
        yield pool
    except Interrupted:
        raise Stopped(signals.received or signal.SIGINT) from None
    except WorkerFailure as failure:
        printed = (failure.log_tail or "").rstrip().splitlines()
        reason = f"no worker could be started: {failure.reason}"
        raise EnvironmentUnmet(reason, *printed) from None
    finally:
        pool.close(at_once=True)
        if pool.server is not None:
            pool.server.close()


class WorkerPool:
    """The workers of a run, one for each process number; beside it one for each backend from
    outside, in which the baseline is timed beside it. Only one of them is asked something at a
    time, and on a GPU only one has a context.

    `first`: the worker that tells machine and software before anything is planned.
    """

    spec: RunSpec
    logs: Path
    first: WorkerProcess

    def __init__(self, device: str, wake_fd: int | None, allow_import: AllowImport = False) -> None:
        self.device, self.wake_fd, self.allow_import = device, wake_fd, allow_import
        on_cpu = device == "cpu" or (device == "auto" and not has_gpu())
        self.server = ForkServer(PROGRAM) if on_cpu else None
        self.started = 0
        self._workers: dict[Seat, WorkerProcess] = {}
        self._judge: WorkerProcess | None = None
        self._last: Seat | None = None
        self.log_failures: list[str] = []  # why a log lacks some of what its worker printed

    def start(self) -> WorkerProcess:
        """The first worker."""
        self.first = self._workers[FIRST] = self._start()
        return self.first

    @property
    def lock_name(self) -> str:
        """Of the device that the workers use: a GPU's UUID, or cpu."""
        return str(self.first.ready.environment.device_uuid or self.first.ready.device)

    def configure(self, spec: RunSpec, logs: Path) -> None:
        """What all workers are told from here on."""
        self.spec, self.logs, self.device = spec, logs, spec.device
        # The logs of a resumed run are kept.
        numbers = (log.stem.rpartition("-")[2] for log in logs.glob("worker-*.log"))
        self.started = max(map(int, filter(str.isdecimal, numbers)), default=0)
        if self.first.exit_code is None:  # else another is started in its place
            self._configured(self.first)
        else:
            self.dismiss(FIRST)

    def worker(self, seat: Seat) -> WorkerProcess:
        """Ready and configured. The worker that was asked before is paused, and with it whatever
        its backend does meanwhile: a thread that spins would share its cores with another.

        Raises WorkerFailure if none can be started, Interrupted.
        """
        if self.spec.device == "cuda":
            for other in [one for one in self._workers if one != seat]:
                self.dismiss(other)
        if self._last != seat and self._last in self._workers:
            self._workers[self._last].pause()
        self._last = seat
        if seat not in self._workers:
            self._workers[seat] = self._started()
        self._workers[seat].resume()
        return self._workers[seat]

    @contextmanager
    def for_check(self, seat: Seat) -> Iterator[WorkerProcess]:
        """A worker for one case alone, where that costs little: forked, of a backend of ours."""
        if seat.backend or self.spec.device == "cuda":
            yield self.worker(seat)
            return
        worker = self._started(CHECKS_LOG)
        try:
            yield worker
        except WorkerFailure as failure:
            worker.kill()
            failure.log_tail = worker.log.tail() or failure.log_tail
            raise
        finally:
            worker.kill(term_s=0)

    def judged(self, timeout_s: float, **request: Any) -> Any:
        """What the process says that judges results; after a failure the next one gets another.

        Raises WorkerFailure, Interrupted.
        """
        try:
            if self._judge is None:
                self._judge = WorkerProcess(
                    JUDGE,
                    server=self.server,
                    wake_fd=self.wake_fd,
                    name="judge",
                    replies=replies.JUDGE,
                )
                self._judge.wait_ready()
            return self._judge.ask("judged", timeout_s, **request)
        except WorkerFailure:
            if self._judge is not None:
                self._judge.kill(term_s=0)
            self._judge = None
            raise

    def ask(self, op: str, **fields: Any) -> Any:
        """The reply of the first worker. Raises WorkerFailure."""
        return self.worker(Seat(0)).ask(op, self.spec.how.limits.timeout_s, **fields)

    def dismiss(self, seat: Seat = FIRST) -> str | None:
        """Kill a worker and return the end of what it printed."""
        worker = self._workers.pop(seat, None)
        if worker is None:
            return None
        worker.kill(term_s=0)
        return worker.log.tail()

    def close(self, *, at_once: bool = False) -> None:
        others = [self._judge] if self._judge else []
        for worker in (*self._workers.values(), *others):
            worker.kill() if at_once else worker.close()
        self._workers.clear()
        self._judge = None

    def _start(self) -> WorkerProcess:
        return start_worker(
            self.device, self.wake_fd, allow_import=self.allow_import, server=self.server
        )

    def _started(self, log: str = "") -> WorkerProcess:
        worker = self._start()
        if why := worker.ready.why:
            worker.kill()
            reason = f"the {self.device} device is gone: {why}"
            raise WorkerFailure(Status.UNAVAILABLE, reason)
        return self._configured(worker, log)

    def _configured(self, worker: WorkerProcess, log: str = "") -> WorkerProcess:
        spec = self.spec
        if not log:
            self.started += 1
            log = f"worker-{self.started}.log"
        worker.log.open(self.logs / log, self.log_failures)
        try:
            worker.ask(
                "configure",
                ANSWER_S,
                seed=spec.seed,
                budget_bytes=spec.memory_bytes,
                measure=spec.how.measure,
                warm_heap=spec.how.plan.allocator == "warm_heap",
                cold_caches=spec.how.plan.caches == "cold",
            )
        except BaseException:
            worker.kill()
            raise
        return worker


# ---- a run while it is measured -----------------------------------------------------------------


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """`measured_on`: the fields of a row that say which device it is. `attached`: what a worker is
    told of each attachment. `attempts`: the attempt of the last row, by id.
    """

    spec: RunSpec
    pool: WorkerPool
    listener: Listener = field(default_factory=Listener)
    measured_on: Mapping[str, str | None] = field(default_factory=dict)
    attached: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    attempts: Mapping[str, int] = field(default_factory=dict)

    def record(self, planned: Planned, status: Status, reason: str = "", **values: Any) -> Record:
        """The next row of something planned."""
        attempt = self.attempts.get(planned.id, 0) + 1
        own = {"device": self.spec.device, "attempt": attempt}
        return Record.of(planned, status, reason, {**self.measured_on, **values, **own})
