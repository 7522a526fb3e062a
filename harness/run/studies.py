"""A study of a run: planned, carried out in a worker, kept as one row of kind study."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ..cases import Planned
from ..process.worker_process import Fault
from ..record import Status, StudyRecord
from .worker_pool import Crew, Terms


class Inquiry:
    """From planned studies to their records. `running` is told which one is under way."""

    def __init__(
        self,
        terms: Terms,
        crew: Crew,
        attempts: Mapping[str, int],
        running: Callable[[str, str], None],
    ) -> None:
        self.terms = terms
        self.crew = crew
        self.attempts = attempts
        self.running = running
        self.planned: Planned | None = None
        self.started_utc = ""
        self.started = 0.0

    def record(self, planned: Planned) -> StudyRecord:
        """The study's row. Raises Interrupted; `unfinished` then has the row."""
        self.planned = planned
        self.started_utc, self.started = (
            datetime.now(UTC).isoformat(timespec="milliseconds"),
            time.monotonic(),
        )
        self.running(planned.id, "")
        first = next(iter(self.terms.pythons), None)
        try:
            answer = self.crew.ask({"op": "study", "study": planned.fields()}, "studied", first)
        except Fault as fault:
            return self._record(
                fault.status, fault.reason, self.crew.dismiss(0, first) or fault.log_tail
            )
        return self._record(
            Status(answer["status"]),
            answer["reason"],
            answer["log_tail"],
            tuple(answer["findings"]),
        )

    def unfinished(self, status: Status, reason: str) -> Iterator[StudyRecord]:
        """The record of the study that was under way when the run was stopped."""
        if self.planned is not None:
            yield self._record(status, reason, None)

    def _record(
        self,
        status: Status,
        reason: str,
        log_tail: str | None,
        findings: tuple[Mapping[str, Any], ...] = (),
    ) -> StudyRecord:
        planned, self.planned = self.planned, None
        assert planned is not None
        return StudyRecord(
            planned=planned,
            device=self.terms.device,
            attempt=self.attempts.get(planned.id, 0) + 1,
            status=status,
            reason=reason,
            log_tail=log_tail,
            findings=findings,
            started_utc=self.started_utc,
            spent_s=time.monotonic() - self.started,
        )
