"""The workers of a run: started when first needed, kept, replaced after a failure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from ...impls._triton.launch_notes import unreturned
from ...impls.problem import Problem
from ..measure.physical_floor import Device
from ..probes import measures
from ..process.child import AllowImport
from ..process.idle import wait_until_idle
from ..process.worker_process import ANSWER_S, WorkerFailure, WorkerProcess
from ..rows.record import Planned, Record, Status
from ..scenario import Plan
from .first_worker import Starter
from .wall_search import TOLERANCE_RATIO

JUDGE = "attnbench.harness.worker.judging"
CHECKS_LOG = "checks.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """What all cases of a run are measured with.

    `watch`: which values of which axes the device's counters are read for. `gpu_uuid`: the GPU
    whose counters are read, if it is not the one that torch uses. `peaks`: what calibration
    measured on this machine. `device_name`: the driver's name of the GPU. `allow_import`: of user
    modules.
    `wall_tolerance_ratio`, `wall_budget_s`: as in a scenario's limits. `measured_on`: the fields
    of a row that say which device it is. `attached`: what a worker is told of each attachment.
    `save_to`: where studies save the models that they train.
    """

    device: str
    plan: Plan
    measure: tuple[str, ...]
    timeout_s: float
    budget_bytes: int
    seed: int
    baseline: str | None = None
    contrast: tuple[str, ...] = ()
    watch: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    gpu_uuid: str | None = None
    peaks: Mapping[str, float] | None = None
    device_name: str | None = None
    allow_import: AllowImport = False
    wall_tolerance_ratio: float = TOLERANCE_RATIO
    wall_budget_s: float | None = None
    measured_on: Mapping[str, str | None] = field(default_factory=dict)
    attached: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    save_to: Path | None = None

    @classmethod
    def of(cls, meta: Mapping[str, Any], gpu_uuid: str | None = None) -> Self:
        """From run.json: a file of results names nothing that is started."""
        scenario = meta["scenario"]
        budget_s = scenario["limits"].get("wall_budget_s")
        return cls(
            device=meta["device"],
            plan=Plan.model_validate(scenario["plan"]),
            measure=tuple(scenario["measure"]),
            timeout_s=scenario["limits"]["timeout_s"],
            wall_tolerance_ratio=scenario["limits"].get("wall_tolerance_ratio", TOLERANCE_RATIO),
            wall_budget_s=None if budget_s is None else budget_s * wall_share(meta),
            budget_bytes=meta["memory_bytes"],
            seed=meta["seed"],
            baseline=scenario["baseline"],
            contrast=tuple(scenario["contrast"]),
            watch=scenario.get("watch", {}),
            gpu_uuid=gpu_uuid,
            peaks=(meta.get("calibration") or {}).get("peaks"),
            device_name=(meta.get("environment") or {}).get("device_name"),
        )

    @property
    def physical_device(self) -> Device:
        """What limits every latency."""
        return Device(self.device, self.device_name, self.peaks)

    @property
    def windows(self) -> int:
        """How many windows a watched case gets in each way of launching."""
        shared = set(self.measure).intersection(measures(own_calls=False))
        return self.plan.windows if shared else 0

    @property
    def profiles(self) -> bool:
        return bool(set(self.measure).intersection(measures(own_calls=True)))

    @property
    def launch_modes(self) -> tuple[Literal["eager", "graph"], ...]:
        graphs = "graphs" in self.measure and self.device == "cuda"
        return ("eager", "graph") if graphs else ("eager",)

    def watches(self, problem: Problem) -> bool:
        """Whether the device's counters are read on this problem."""
        return bool(set(measures()) & set(self.measure)) and all(
            getattr(problem, axis) in values for axis, values in self.watch.items()
        )

    def without_windows(self, problem: Problem) -> dict[str, str]:
        """Why a case that was timed on a GPU has no window of its counters; {} on a CPU."""
        if self.device != "cuda" or "latency" not in self.measure:
            return {}
        if not self.windows:
            why = f"measure is {', '.join(self.measure)}"
        elif not self.watches(problem):
            why = "the scenario's watch leaves this problem out"
        else:
            why = "the worker took none"
        return {"windows": f"no window: {why}"}


def wall_share(meta: Mapping[str, Any]) -> float:
    """How much of the time for walls this run has: a shard's walls get what they get in one run."""
    shard, own = meta.get("shard"), len(meta.get("walls") or ())
    elsewhere = len(shard["elsewhere"]["walls"]) if shard else 0
    return own / (own + elsewhere) if elsewhere else 1.0


class Seat(NamedTuple):
    """Which worker: its process number, and the backend from outside that it is for, "" if it is
    shared by those of ours.
    """

    process: int
    backend: str = ""


FIRST = Seat(0)


class WorkerPool:
    """The workers of a run, one for each process number; beside it one for each backend from
    outside, in which the baseline is timed beside it. Only one of them is asked something at a
    time, and on a GPU only one has a context.
    """

    def __init__(self, config: RunConfig, logs: Path, wake_fd: int | None, starter: Starter) -> None:
        self.config = config
        self.logs = logs
        self.wake_fd = wake_fd
        self.starter = starter
        # The logs of a resumed run are kept.
        numbers = (log.stem.rpartition("-")[2] for log in logs.glob("worker-*.log"))
        self.started = max(map(int, filter(str.isdecimal, numbers)), default=0)
        self._workers: dict[Seat, WorkerProcess] = {}
        self._judge: WorkerProcess | None = None
        self._last: Seat | None = None
        self._log_failure: str | None = None

    def adopt(self, worker: WorkerProcess) -> None:
        """Take over a worker that was started before the run's configuration was known."""
        self._workers[Seat(0)] = self._configured(worker)

    def worker(self, seat: Seat) -> WorkerProcess:
        """Ready and configured, once the worker that was asked before is idle.

        Raises WorkerFailure if none can be started, Interrupted.
        """
        if self.config.device == "cuda":
            for other in [one for one in self._workers if one != seat]:
                self.dismiss(other)
        if seat not in self._workers:
            self._workers[seat] = self._configured(self._start())
        if self._last != seat and self._last in self._workers:
            wait_until_idle(self._workers[self._last].pid)
        self._last = seat
        return self._workers[seat]

    @contextmanager
    def for_check(self, seat: Seat) -> Iterator[WorkerProcess]:
        """A worker for one case alone, where that costs little: forked, of a backend of ours."""
        if seat.backend or self.config.device == "cuda":
            yield self.worker(seat)
            return
        worker = self._configured(self._start(), CHECKS_LOG)
        try:
            yield worker
        except WorkerFailure as failure:
            worker.kill()
            failure.log_tail = worker.log_tail() or failure.log_tail
            raise
        finally:
            self._end(worker)

    def pid_of(self, seat: Seat) -> int | None:
        """None if there is no such worker now."""
        return self._workers[seat].pid if seat in self._workers else None

    def judge(self) -> WorkerProcess:
        """The process that judges results. Raises WorkerFailure, Interrupted."""
        if self._judge is None:
            self._judge = self.starter.start(JUDGE, wake_fd=self.wake_fd)
        return self._judge

    def dismiss_judge(self) -> None:
        """After a failure: the next result gets another one."""
        if self._judge is not None:
            self._end(self._judge)
        self._judge = None

    def ask(self, op: str, **fields: Any) -> Any:
        """The reply of the first worker. Raises WorkerFailure."""
        return self.worker(Seat(0)).ask(op, self.config.timeout_s, **fields)

    def dismiss(self, seat: Seat = FIRST) -> str | None:
        """Kill a worker and return the end of what it printed."""
        worker = self._workers.pop(seat, None)
        if worker is None:
            return None
        self._end(worker)
        return worker.log_tail()

    def close(self, *, at_once: bool = False) -> None:
        others = [self._judge] if self._judge else []
        for worker in (*self._workers.values(), *others):
            worker.kill() if at_once else worker.close()
            self._note(worker)
        self._workers.clear()
        self._judge = None

    @property
    def log_failure(self) -> str | None:
        """Why a log lacks some of what its worker printed."""
        for worker in self._workers.values():
            self._note(worker)
        return self._log_failure

    def _end(self, worker: WorkerProcess) -> None:
        worker.kill()
        self._note(worker)

    def _note(self, worker: WorkerProcess) -> None:
        self._log_failure = self._log_failure or worker.log_failure

    def _start(self) -> WorkerProcess:
        config = self.config
        worker = self.starter.start_worker(config.device, self.wake_fd, config.allow_import)
        if why := worker.ready.why:
            worker.kill()
            reason = f"the {config.device} device is gone: {why}"
            raise WorkerFailure(Status.UNAVAILABLE, reason)
        return worker

    def _configured(self, worker: WorkerProcess, log: str = "") -> WorkerProcess:
        config = self.config
        if not log:
            self.started += 1
            log = f"worker-{self.started}.log"
        worker.write_log(self.logs / log)
        try:
            worker.ask(
                "configure",
                ANSWER_S,
                seed=config.seed,
                budget_bytes=config.budget_bytes,
                measure=config.measure,
                warm_heap=config.plan.allocator == "warm_heap",
                cold_caches=config.plan.caches == "cold",
                gpu_uuid=config.gpu_uuid,
            )
        except BaseException:
            worker.kill()
            raise
        return worker


def hanging_launch(pid: int | None) -> str:
    """What of a worker's GPU kernels has not returned, for a sentence; "" if it noted nothing."""
    launch = unreturned(pid) if pid else ""
    return f", in a launch of {launch} that has not returned" if launch else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What every step of a run needs.

    `attempts`: the attempt of the last row, by id. `running` hears what a worker is doing, as
    (case, phase), and `steps` how many are done, as in Listener.
    """

    config: RunConfig
    pool: WorkerPool
    attempts: Mapping[str, int]
    running: Callable[[str, str], None]
    steps: Callable[[str, int], None] = lambda *_: None

    def record(self, planned: Planned, status: Status, reason: str = "", **values: Any) -> Record:
        """The next row of something planned."""
        return Record(
            planned=planned,
            device=self.config.device,
            attempt=self.attempts.get(planned.id, 0) + 1,
            status=status,
            reason=reason,
            values={**self.config.measured_on, **values},
        )
