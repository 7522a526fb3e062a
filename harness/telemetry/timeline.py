"""Samples the device in a process of its own (sampler.py) while a run says so.

A run is never broken by its telemetry.
"""

from collections.abc import Iterable
from pathlib import Path

from ..process import events
from ..process.worker_process import WorkerFailure, WorkerProcess
from ..rows.record import Status
from ..rows.run_files import TELEMETRY

PROGRAM = "attnbench.harness.telemetry.sampler"
START_S = 10.0  # opening NVML takes seconds if nothing else keeps the driver loaded
PAUSE_S = 2.0  # a sample takes milliseconds, unless the driver blocks its caller
CLOSE_S = 2.0


class Timeline:
    """Samples into a run's folder between `sample` and `pause`.

    No method raises; `failure` says why telemetry has ended early, else it is None.
    """

    def __init__(self, run: Path, uuid: str | None) -> None:
        """`uuid`: of the GPU, as NVML writes it; None for the host."""
        self.failure: str | None = None
        self._arguments = (str(run / TELEMETRY), *([uuid] if uuid else []))
        self._sampler: WorkerProcess | None = None
        self._timeout_s = START_S
        self._sampling = self._ended = False

    @property
    def pid(self) -> int | None:
        return self._sampler.pid if self._sampler else None

    def sample(self, what: str, pids: Iterable[int] = ()) -> None:
        """Sample from now on, under the name of a case or phase; waits for nothing.

        On the host also the memory of the processes `pids`.
        """
        if self._ended:
            return
        try:
            if self._sampler is None:
                self._sampler = WorkerProcess(
                    PROGRAM, *self._arguments, name="sampler", events=events.SAMPLER
                )
            self._sampling = True
            self._sampler.send({"op": "sample", "what": what, "pids": list(pids)}, timeout_s=0)
        except (WorkerFailure, OSError) as failure:
            self._fail(failure)

    def pause(self) -> None:
        """Return when sampling has stopped; a sampler that does not answer in time is killed."""
        if not self._sampling or self._sampler is None:
            return
        self._sampling = False
        try:
            self._sampler.send({"op": "pause"}, timeout_s=0)
            while (event := self._sampler.receive(self._timeout_s))["event"] != "paused":
                self._raise_failed(event)
            self._timeout_s = PAUSE_S
        except (WorkerFailure, OSError) as failure:
            self._fail(failure)

    def close(self) -> None:
        """End the sampler; safe to call twice."""
        if self._sampler is not None and not self._ended:
            self._sampler.end_requests()
            try:
                while True:
                    self._raise_failed(self._sampler.receive(CLOSE_S))
            except WorkerFailure as failure:
                if self._sampler.exit_code != 0 or failure.status is not Status.CRASHED:
                    self._fail(failure)
        self._end()

    def _raise_failed(self, event: dict[str, str]) -> None:
        if event["event"] == "failed":
            raise WorkerFailure(Status.ERROR, event["reason"])

    def _fail(self, failure: WorkerFailure | OSError) -> None:
        """Keep the reason: what the sampler said last, else how it ended."""
        reason = failure.reason if isinstance(failure, WorkerFailure) else str(failure)
        if isinstance(failure, WorkerFailure) and failure.status is Status.TIMEOUT:
            reason = "the sampler did not answer in time and was ended"
        if self._sampler is not None and not self._ended:
            try:
                while True:
                    self._raise_failed(self._sampler.receive(0))
            except WorkerFailure as last:
                if last.status is Status.ERROR:
                    reason = last.reason
            self._sampler.kill(term_s=0)
            if printed := (self._sampler.log_tail() or "").strip():
                reason += f": {printed.rpartition(chr(10))[2]}"
        self.failure = self.failure or reason
        self._end()

    def _end(self) -> None:
        self._ended, self._sampling = True, False
        if self._sampler is not None:
            self._sampler.kill(term_s=0)
