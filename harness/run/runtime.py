"""What a run has only while it is measured on one device, and no file says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..rows.record import Planned, Record, Status
from .listener import Listener
from .spec import RunSpec
from .worker_pool import WorkerPool


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """`measured_on`: the fields of a row that say which device it is. `attached`: what a worker is
    told of each attachment. `attempts`: the attempt of the last row,
    by id.
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
