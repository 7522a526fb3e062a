"""The workers of a run: started when first needed, kept, replaced after a failure."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...impls._triton.launch_notes import unreturned
from ..files.errors import shown
from ..process.child import AllowImport
from ..process.idle import wait_until_idle
from ..process.worker_process import ANSWER_S, WorkerFailure, WorkerProcess
from ..rows.record import Status
from ..rows.warm_up import first_warm_up_s
from .first_worker import start_worker
from .spec import RunSpec


class WorkerPool:
    """One worker per process number. Only one of them is asked something at a time."""

    def __init__(
        self,
        spec: RunSpec,
        logs: Path,
        wake_fd: int | None,
        *,
        allow_import: AllowImport = False,
        gpu_uuid: str | None = None,
    ) -> None:
        """`allow_import`: of user modules. `gpu_uuid`: the GPU whose counters are read, if it is
        not the one that torch uses.
        """
        self.spec = spec
        self.allow_import = allow_import
        self.gpu_uuid = gpu_uuid
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
                reason = f"the {self.spec.device} device is gone: {worker.ready['why']}"
                raise WorkerFailure(Status.UNAVAILABLE, reason)
            self._workers[number] = self._configure(worker)
        return self._workers[number]

    def _start(self, *, wait: bool = True) -> WorkerProcess:
        return start_worker(
            self.spec.device, self.wake_fd, allow_import=self.allow_import, wait=wait
        )

    def ask(self, request: Mapping[str, Any], wanted: str) -> dict[str, Any]:
        """The one answer of the first worker. Raises WorkerFailure."""
        return self.worker(0).ask(request, wanted, self.spec.timeout_s)

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
        spec = self.spec
        self.started += 1
        worker.write_log(self.logs / f"worker-{self.started}.log")
        request = {
            "op": "configure",
            "seed": spec.seed,
            "budget_bytes": spec.budget_bytes,
            "measure": spec.measure,
            "warm_heap": spec.plan.allocator == "warm_heap",
            "cold_caches": spec.plan.caches == "cold",
            "first_warm_up_s": first_warm_up_s(spec.plan.processes),
            "max_warm_up_s": spec.plan.budget_s / spec.plan.processes,
            "gpu_uuid": self.gpu_uuid,
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
