"""A study of a run: planned, carried out in a worker, kept as one row of kind study."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from ...impls.problem import Problem
from ..case import problem_of
from ..record import SCHEMA, Status
from ..scenario import Scenario
from .crew import Crew, Terms
from .spawn import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A study of studies/ on one problem."""

    study: str
    problem: Problem

    @property
    def id(self) -> str:
        return f"study-{self.study}"

    @property
    def backend(self) -> str:
        """What --only and --skip match beside the id."""
        return self.study

    def fields(self) -> dict[str, Any]:
        return {"case": self.id, "study": self.study, **asdict(self.problem)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRecord:
    """docs/format.md says what each field means."""

    planned: Planned
    device: str
    attempt: int
    status: Status
    reason: str = ""
    log_tail: str | None = None
    findings: tuple[Mapping[str, Any], ...] = ()
    started_utc: str | None = None
    spent_s: float | None = None

    @property
    def id(self) -> str:
        return self.planned.id

    def row(self) -> dict[str, Any]:
        """The row as it is stored, JSON-ready."""
        return {
            "schema": SCHEMA,
            "kind": "study",
            "case": self.id,
            "study": self.planned.study,
            "attempt": self.attempt,
            "device": self.device,
            "status": self.status,
            "reason": self.reason,
            "log_tail": self.log_tail,
            "findings": list(self.findings),
            "started_utc": self.started_utc,
            "spent_s": self.spent_s,
        }


def studies_of(scenario: Scenario, device: str) -> tuple[Planned, ...]:
    """Every study that the scenario names, on its smallest problem: that with the fewest pairs, and the most heads among equals."""
    problem_groups, _ = scenario.problem_groups(device)
    problems = [problem for group in problem_groups for problem in group]
    if not problems:
        return ()
    smallest = min(problems, key=lambda one: (one.batch * one.seq_len * one.kv_seq_len, -one.heads))
    return tuple(Planned(study=name, problem=smallest) for name in scenario.studies)


def study_of(fields: Mapping[str, Any]) -> Planned:
    """What `fields` was written from. Raises KeyError where a field is missing."""
    return Planned(study=fields["study"], problem=problem_of(fields))


class Inquiry:
    """From planned studies to their records. `running` is told which one is under way."""

    def __init__(self, terms: Terms, crew: Crew, attempts: Mapping[str, int], running: Callable[[str, str], None]) -> None:
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
        self.started_utc, self.started = datetime.now(UTC).isoformat(timespec="milliseconds"), time.monotonic()
        self.running(planned.id, "")
        first = next(iter(self.terms.pythons), None)
        try:
            answer = self.crew.ask({"op": "study", "study": planned.fields()}, "studied", first)
        except Fault as fault:
            return self._record(fault.status, fault.reason, self.crew.dismiss(0, first) or fault.log_tail)
        return self._record(Status(answer["status"]), answer["reason"], answer["log_tail"], tuple(answer["findings"]))

    def unfinished(self, status: Status, reason: str) -> Iterator[StudyRecord]:
        """The record of the study that was under way when the run was stopped."""
        if self.planned is not None:
            yield self._record(status, reason, None)

    def _record(self, status: Status, reason: str, log_tail: str | None, findings: tuple[Mapping[str, Any], ...] = ()) -> StudyRecord:
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
