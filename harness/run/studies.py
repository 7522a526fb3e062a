"""Studies: files beside a run that they look at, and running them one at a time, each in a worker;
each is one row of kind study.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..cases.case import PlannedStudy
from ..process.signals import Signals
from ..process.worker_process import WorkerFailure
from ..rows.record import Record, Status
from ..studies.attachments import attached_to
from .worker_pool import Runtime, start_worker, utc_now

TIME_SHARE = 0.5  # of the time limit, for a study of a file that can end early
OWN_PROCESS = "process"
"""The axis of a study whose parts are each run in a process of their own."""
OPEN_S = 600.0  # weights of many GiB on a network disk

Told = Mapping[str, str | None]
"""What a worker is told of an attachment."""


def tried(
    attached: Mapping[str, tuple[str, Told]],
    device: str,
    budget_bytes: int,
    signals: Signals,
) -> list[str]:
    """What is wrong with attachments: all are opened in one worker of their own, so that what they
    load disturbs no measurement.

    `attached`: the study of each, and what it is told. Raises WorkerFailure if no worker can be
    started, Interrupted.
    """
    problems: list[str] = []
    if not attached:
        return problems
    worker = start_worker(device, signals.wake_fd)
    try:
        for name, (study, told) in attached.items():
            fields = {"study": study, "attached": told, "budget_bytes": budget_bytes}
            try:
                problems += worker.ask("open_attachment", OPEN_S, **fields).problems
            except WorkerFailure as failure:
                problems.append(
                    f"{name}: its process ended ({failure.reason}); wanted a model that fits into"
                    " memory"
                )
                break
    finally:
        worker.kill()
    return problems


class StudyRunner:
    """From planned studies to their records."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.study: PlannedStudy | None = None

    def records(self, studies: Iterable[PlannedStudy]) -> Iterator[Record]:
        """Their rows, one after the other. Raises Interrupted; `unfinished` has the row then."""
        pool = self.runtime.pool
        for study in studies:
            self.study, self.started_utc, self.since = study, utc_now(), time.monotonic()
            self.runtime.listener.running(study.id, "")
            if OWN_PROCESS in dict(study.part):
                pool.dismiss()  # the next one that is asked is a new one
            try:
                found = pool.ask("study", **self._request(study))
            except WorkerFailure as failure:
                tail = pool.dismiss() or failure.log_tail
                yield self._record(study, failure.status, failure.reason, log_tail=tail)
            else:
                more = found.model_dump(include={"log_tail", "findings"})
                yield self._record(study, Status(found.status), found.reason, **more)

    def _request(self, study: PlannedStudy) -> dict[str, Any]:
        runtime = self.runtime
        request: dict[str, Any] = {"study": study.fields()}
        if (name := attached_to(study.study, dict(study.part))) is not None:
            told = runtime.attached.get(name, {})
            request["attached"] = {**told, "most_s": TIME_SHARE * runtime.spec.how.limits.timeout_s}
        return request

    def unfinished(self, status: Status, reason: str) -> Iterator[Record]:
        """The record of the study that was running when the run was stopped."""
        if self.study is not None:
            yield self._record(self.study, status, reason)

    def _record(self, study: PlannedStudy, status: Status, reason: str, **values: Any) -> Record:
        """`values`: log_tail and findings."""
        self.study = None
        values |= {"started_utc": self.started_utc, "spent_s": time.monotonic() - self.since}
        return self.runtime.record(study, status, reason, **values)
