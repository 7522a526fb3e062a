"""The row of a wall."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from ..record import SCHEMA, Status
from .plan import Wall
from .search import LimitedBy, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class WallRecord:
    """docs/format.md says what each field means. Raises ValueError where status, reason and what was found disagree."""

    wall: Wall
    device: str
    attempt: int
    status: Status
    exactness: str | None = None
    reason: str = ""
    log_tail: str | None = None
    seq_len_low: int | None = None
    seq_len_high: int | None = None
    predicted_seq_len: int | None = None
    predicted_source: str | None = None
    predicted_reason: str = "the search ended before it was worked out"
    limited_by: LimitedBy | None = None
    memory_bytes: int
    probes: tuple[Trial, ...] = ()
    started_utc: str | None = None
    spent_s: float | None = None

    def __post_init__(self) -> None:
        if (self.status is Status.OK) == bool(self.reason):
            raise ValueError(f"{self.id}: status {self.status} with reason {self.reason!r}; a reason belongs to every status but ok")
        if self.status is Status.OK and (self.seq_len_low is None or self.limited_by is None):
            raise ValueError(f"{self.id}: status ok without a length that fits and what limits it")

    @property
    def id(self) -> str:
        return self.wall.id

    def row(self) -> dict[str, Any]:
        """The row as it is stored, JSON-ready."""
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("wall", "attempt", "device", "probes")}
        return {
            "schema": SCHEMA,
            "kind": "wall",
            "case": self.id,
            "attempt": self.attempt,
            "device": self.device,
            **{name: value for name, value in self.wall.fields().items() if name != "case"},
            **rest,
            "probes": [asdict(trial) for trial in self.probes],
        }
