"""The rows of results, one class for each kind: what a case, a wall or a study came to."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Literal

from .cases import Case, Planned, Wall

SCHEMA = 1


class Status(StrEnum):
    """How a case ended. Every planned case ends as exactly one of these."""

    OK = "ok"
    OOM = "oom"
    PREDICTED_OOM = "predicted_oom"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"
    INCORRECT = "incorrect"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    ERROR = "error"
    INTERRUPTED = "interrupted"


FAILURES = frozenset({Status.INCORRECT, Status.TIMEOUT, Status.CRASHED, Status.ERROR})
"""Statuses that make a run end with exit code 1; the other ones are results."""

RETRIED = frozenset({Status.CRASHED, Status.ERROR, Status.TIMEOUT})
"""Statuses that --retry-failed measures again."""

Blocks = list[list[list[float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row; docs/format.md says what each field means. Raises ValueError where status, reason
    and samples disagree.
    """

    case: Case
    device: str
    attempt: int
    status: Status
    exactness: str | None = None
    reason: str = ""
    phase: str = ""
    log_tail: str | None = None
    session: str | None = None
    block_ms: Blocks | None = None
    wall_block_ms: Blocks | None = None
    hot_block_ms: Blocks | None = None
    graph_block_ms: Blocks | None = None
    graph_reason: str | None = None
    conditions: list[list[dict[str, Any]]] | None = None
    contended_blocks: int | None = None
    throttled_blocks: int | None = None
    warmup_stationary: bool | None = None
    processes: int | None = None
    stop: str | None = None
    half_width_ratio: float | None = None
    pair_half_width_ratio: float | None = None
    input_bytes: int | None = None
    peak_bytes: int | None = None
    output_bytes: int | None = None
    peak_source: str | None = None
    resident_peak_bytes: int | None = None
    allocated_peak_bytes: int | None = None
    reserved_peak_bytes: int | None = None
    device_used_bytes: int | None = None
    predicted_peak_bytes: int | None = None
    predicted_source: str | None = None
    predicted_reason: str = ""
    meta_peak_bytes: int | None = None
    meta_reason: str = ""
    work_flops: int | None = None
    work_exps: int | None = None
    minimal_bytes: int | None = None
    error_l2_ratio: float | None = None
    error_ratio: float | None = None
    kernel_requested: str | None = None
    kernel: str | None = None
    prepare_ms: float | None = None
    first_call_ms: float | None = None
    configuration: dict[str, Any] | None = None
    utilization_tier: str | None = None
    windows: list[dict[str, Any]] | None = None
    tables: dict[str, Any] | None = None
    missing: dict[str, str] | None = None
    started_utc: str | None = None
    spent_s: float | None = None

    def __post_init__(self) -> None:
        if (self.status is Status.OK) == bool(self.reason):
            raise ValueError(
                f"{self.case.id}: status {self.status} with reason {self.reason!r}; a reason"
                " belongs to every status but ok"
            )
        if self.block_ms is not None and self.status is not Status.OK:
            raise ValueError(
                f"{self.case.id}: samples beside status {self.status}; a case that failed has no"
                " speed"
            )

    @property
    def id(self) -> str:
        return self.case.id

    def row(self) -> dict[str, Any]:
        """The row as it is stored, JSON-ready."""
        rest = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("case", "attempt", "device")
        }
        return {
            "schema": SCHEMA,
            "kind": "latency",
            "case": self.case.id,
            "attempt": self.attempt,
            "device": self.device,
            **{name: value for name, value in self.case.fields().items() if name != "case"},
            **rest,
        }


LimitedBy = Literal["memory", "time", "length", "backend"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One probe: status ok where it fitted, oom where it did not; others say nothing about memory,
    but that it did not go.
    """

    seq_len: int
    status: Status
    reason: str
    spent_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WallRecord:
    """docs/format.md says what each field means. Raises ValueError where status, reason and what
    was found disagree.
    """

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
            raise ValueError(
                f"{self.id}: status {self.status} with reason {self.reason!r}; a reason belongs to"
                " every status but ok"
            )
        if self.status is Status.OK and (self.seq_len_low is None or self.limited_by is None):
            raise ValueError(f"{self.id}: status ok without a length that fits and what limits it")

    @property
    def id(self) -> str:
        return self.wall.id

    def row(self) -> dict[str, Any]:
        """The row as it is stored, JSON-ready."""
        rest = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("wall", "attempt", "device", "probes")
        }
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
