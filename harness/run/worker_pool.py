"""The workers of a run: started when first needed, kept, replaced after a failure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from ...impls._triton.launch_notes import unreturned
from ...impls.problem import Problem
from ..files.errors import shown
from ..measure.physical_floor import Device
from ..probes import measures
from ..process.child import AllowImport
from ..process.idle import wait_until_idle
from ..process.worker_process import ANSWER_S, WorkerFailure, WorkerProcess
from ..rows.record import Planned, Record, Status
from ..rows.warm_up import first_warm_up_s
from ..scenario import Plan
from .first_worker import start_worker
from .wall_search import TOLERANCE_RATIO


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


class WorkerPool:
    """One worker per process number. Only one of them is asked something at a time."""

    def __init__(self, config: RunConfig, logs: Path, wake_fd: int | None) -> None:
        self.config = config
        self.logs = logs
        self.wake_fd = wake_fd
        # The logs of a resumed run are kept.
        numbers = (log.stem.rpartition("-")[2] for log in logs.glob("worker-*.log"))
        self.started = max(map(int, filter(str.isdecimal, numbers)), default=0)
        self._workers: dict[int, WorkerProcess] = {}
        self._starting: dict[int, WorkerProcess] = {}
        self._last: int | None = None
        self._log_failure: str | None = None

    def adopt(self, worker: WorkerProcess) -> None:
        """Take over a worker that was started before the run's configuration was known."""
        self._workers[0] = self._configure(worker)

    def start_ahead(self, numbers: Iterable[int]) -> None:
        """Let these workers start while others work; nothing waits for them."""
        for number in numbers:
            if number not in self._workers and number not in self._starting:
                with suppress(WorkerFailure):  # the one that is asked for it will say why
                    self._starting[number] = self._start(wait=False)

    def wait_started(self) -> None:
        """Until no worker is starting, which would disturb what is timed. Raises Interrupted."""
        for number in list(self._starting):
            with suppress(WorkerFailure):  # as above
                self._worker(number)

    def worker(self, number: int) -> WorkerProcess:
        """The worker of this number, once the worker that was asked before is idle.

        Raises WorkerFailure if none can be started.
        """
        worker = self._worker(number)
        if self._last != number and self._last in self._workers:
            wait_until_idle(self._workers[self._last].pid)
        self._last = number
        return worker

    def _worker(self, number: int) -> WorkerProcess:
        """The worker of this number, ready and configured. Raises WorkerFailure, Interrupted."""
        if number not in self._workers:
            worker = self._starting.pop(number, None)
            if worker is None:
                worker = self._start()
            else:
                worker.wait_ready()
            if worker.ready["why"]:
                worker.kill()
                reason = f"the {self.config.device} device is gone: {worker.ready['why']}"
                raise WorkerFailure(Status.UNAVAILABLE, reason)
            self._workers[number] = self._configure(worker)
        return self._workers[number]

    def _start(self, *, wait: bool = True) -> WorkerProcess:
        config = self.config
        return start_worker(
            config.device, self.wake_fd, allow_import=config.allow_import, wait=wait
        )

    def ask(self, request: Mapping[str, Any], wanted: str) -> dict[str, Any]:
        """The one answer of the first worker. Raises WorkerFailure."""
        return self.worker(0).ask(request, wanted, self.config.timeout_s)

    def dismiss(self, number: int) -> str | None:
        """Kill a worker and return the end of what it printed."""
        worker = self._workers.pop(number, None)
        if worker is None:
            return None
        worker.kill()
        self._note(worker)
        return worker.log_tail()

    def close(self, *, at_once: bool = False) -> None:
        for worker in self._starting.values():
            worker.kill()
        for worker in self._workers.values():
            worker.kill() if at_once else worker.close()
            self._note(worker)
        self._starting.clear()
        self._workers.clear()

    @property
    def log_failure(self) -> str | None:
        """Why a log lacks some of what its worker printed."""
        for worker in self._workers.values():
            self._note(worker)
        return self._log_failure

    def _note(self, worker: WorkerProcess) -> None:
        self._log_failure = self._log_failure or worker.log_failure

    def _configure(self, worker: WorkerProcess) -> WorkerProcess:
        config = self.config
        self.started += 1
        worker.write_log(self.logs / f"worker-{self.started}.log")
        request = {
            "op": "configure",
            "seed": config.seed,
            "budget_bytes": config.budget_bytes,
            "measure": config.measure,
            "warm_heap": config.plan.allocator == "warm_heap",
            "cold_caches": config.plan.caches == "cold",
            "first_warm_up_s": first_warm_up_s(config.plan.processes),
            "max_warm_up_s": config.plan.budget_s / config.plan.processes,
            "gpu_uuid": config.gpu_uuid,
        }
        try:
            worker.ask(request, "configured", ANSWER_S)
        except BaseException:
            worker.kill()
            raise
        return worker


def bad_reply(event: Mapping[str, Any]) -> WorkerFailure:
    """For an event that does not fit what was asked."""
    of = f" of {shown(event['case'])}" if event.get("case") else ""
    return WorkerFailure(Status.ERROR, f"bad reply: {event['event']}{of} answers no request")


def hanging_launch(worker: WorkerProcess | None) -> str:
    """What of a worker's GPU kernels has not returned, for a sentence; "" if it noted nothing."""
    launch = unreturned(worker.pid) if worker else ""
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
