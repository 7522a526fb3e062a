"""A row that is written: made complete of what was planned and found, and checked once.

model.py has the fields of each kind; the reader checks lines by the same.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .run_files import LINE_CAP_BYTES, SCHEMA, holds_large, parsed
from .status import FAILURES, RETRIED, Status

__all__ = ["FAILURES", "RETRIED", "Status"]  # what is defined here is public, too

Blocks = list[list[list[float]]]
"""Samples, [process][block][call]."""
OF_THE_PLAN = (
    *("input_bytes", "work_flops", "work_exps", "minimal_bytes"),
    "predicted_peak_bytes",
)
"""What is computed of a case before it runs, and of an absurd one is beyond 64 bits."""
ENCODER = json.JSONEncoder(allow_nan=False)
MOST_CHARACTERS = 4096  # of a reason, a log tail or a traceback
OF_AN_ERROR = (
    *("device", "attempt", "started_utc", "spent_s", "phase", "exactness", "log_tail"),
    *("memory_bytes", "probes", "predicted_reason"),
)
"""What the row of an error keeps of what was found."""


class Planned(Protocol):
    """What a row is about: a Case, Wall or PlannedStudy."""

    @property
    def kind(self) -> str: ...

    @property
    def id(self) -> str: ...

    def fields(self) -> dict[str, Any]:
        """Its fields in a row and in run.json."""


@dataclass(frozen=True, slots=True)
class Record:
    """A row as it is stored, and its line."""

    row: Mapping[str, Any]
    line: bytes

    @classmethod
    def of(
        cls, planned: Planned, status: Status, reason: str, values: Mapping[str, Any]
    ) -> "Record":
        """The result of something planned; an error instead if it does not fit the format.

        `values`: further fields of its kind by name; what is left out is null. Raises ValueError if
        one is not a field of its kind.
        """
        row = _filled(planned, status, reason, values)
        try:
            return cls(row, _line(row))
        except ValueError as error:
            reason = f"its row does not fit the format: {error}"
        kept = {name: value for name, value in values.items() if name in OF_AN_ERROR}
        while True:  # leave out one value after the other, until the rest fits
            row = _filled(planned, Status.ERROR, reason, kept)
            try:
                return cls(row, _line(row))
            except ValueError as error:
                if (name := re.split(r"\W", str(error), maxsplit=1)[0]) not in kept:
                    raise
                del kept[name]

    @property
    def id(self) -> str:
        return str(self.row["case"])

    @property
    def status(self) -> Status:
        return Status(self.row["status"])

    @property
    def reason(self) -> str:
        return str(self.row["reason"])

    def __getitem__(self, name: str) -> Any:
        """One field; None if it is null or not of this kind."""
        return self.row.get(name)


def _filled(
    planned: Planned, status: Status, reason: str, values: Mapping[str, Any]
) -> dict[str, Any]:
    """All fields in their order: long texts shortened, null for what exceeds 64 bits."""
    from .model import USUAL  # needs pydantic, which takes 0.1 s
    from .values import INT64

    usual = USUAL[planned.kind]
    if unknown := values.keys() - usual.keys():
        raise ValueError(f"{planned.id}: {sorted(unknown)}: not in a row of kind {planned.kind}")
    if len(reason) > MOST_CHARACTERS:
        reason = f"{reason[:MOST_CHARACTERS]}... ({len(reason)} characters)"
    known = {**values, **planned.fields(), "schema": SCHEMA, "kind": planned.kind}
    known |= {"status": status.value, "reason": reason}
    if isinstance(tail := known.get("log_tail"), str):
        known["log_tail"] = tail[-MOST_CHARACTERS:]
    for name in OF_THE_PLAN:
        if type(value := known.get(name)) is int and value >= INT64:
            known[name] = None
    return {name: known.get(name, value) for name, value in usual.items()}


def _line(row: dict[str, Any]) -> bytes:
    """Raises ValueError: `field: what was found, what was wanted`."""
    from .model import check_row

    check_row(row)
    _refuse_contradictions(row)
    try:
        line = f"{ENCODER.encode(row)}\n".encode()
    except (ValueError, TypeError, RecursionError):
        for name, value in row.items():
            _encoded(name, value)  # raises, and says of which
        raise
    if len(line) > LINE_CAP_BYTES:
        sizes = {name: len(_encoded(name, value)) for name, value in row.items()}
        name = max(sizes, key=sizes.__getitem__)
        raise ValueError(
            f"{name}: found {sizes[name]} bytes, wanted a row of at most {LINE_CAP_BYTES >> 20} MiB"
        )
    if holds_large(line):
        parsed(line)  # a value of any type may hold a number that the reader refuses
    return line


def _encoded(name: str, value: Any) -> bytes:
    """Raises ValueError."""
    try:
        return ENCODER.encode(value).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{name}: not JSON ({error}); wanted null for a missing value") from None


def _refuse_contradictions(row: Mapping[str, Any]) -> None:
    """What a reader takes, and a writer never says. Raises ValueError."""
    ok = row["status"] == Status.OK
    if ok == bool(row["reason"]):
        raise ValueError(f"status: found {row['status']} with reason {row['reason']!r}")
    error, limit = row.get("error_ratio"), row.get("error_limit_ratio")
    if ok and error is not None and limit is not None and not error <= limit:
        raise ValueError(f"error_ratio: found {error:g} with status ok; {limit:g} passes")
    if not ok and row.get("block_ms") is not None:
        raise ValueError(f"block_ms: found samples with status {row['status']}, wanted none")
    if ok and row["kind"] == "wall" and None in (row["seq_len_low"], row["limited_by"]):
        raise ValueError("status: found ok without a length that fits and what limits it")
