"""One row of results: what a case came to."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from .case import Case

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
    """One row; docs/format.md says what each field means. Raises ValueError where status, reason and samples disagree."""

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
            raise ValueError(f"{self.case.id}: status {self.status} with reason {self.reason!r}; a reason belongs to every status but ok")
        if self.block_ms is not None and self.status is not Status.OK:
            raise ValueError(f"{self.case.id}: samples beside status {self.status}; a case that failed has no speed")

    @property
    def id(self) -> str:
        return self.case.id

    def row(self) -> dict[str, Any]:
        """The row as it is stored, JSON-ready."""
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("case", "attempt", "device")}
        return {
            "schema": SCHEMA,
            "kind": "latency",
            "case": self.case.id,
            "attempt": self.attempt,
            "device": self.device,
            **{name: value for name, value in self.case.fields().items() if name != "case"},
            **rest,
        }
