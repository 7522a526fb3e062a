"""One row of results, of any kind: as a record, and as the line that is stored, which the reader
takes. model.py has the fields of each kind.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal, Protocol, get_args

from .run_files import LINE_CAP_BYTES, SCHEMA, parsed_row
from .status import FAILURES, RETRIED, Status

__all__ = ["FAILURES", "RETRIED", "Status"]  # what is defined here is public, too

EMPTY = {"str": "", "list": [], "object": {}}
"""What a field that must have a value is if nothing was said of it, by its type."""


Kind = Literal["latency", "wall", "study"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Blocks = list[list[list[float]]]
"""Samples, [process][block][call]."""


class Planned(Protocol):
    """What a row is about: a Case, Wall or PlannedStudy of cases.py."""

    @property
    def kind(self) -> Kind: ...

    @property
    def id(self) -> str: ...

    def fields(self) -> dict[str, Any]:
        """Its fields in a row and in run.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The result of something planned.

    `values`: further fields of its kind by name; what is left out is null. Raises ValueError if a
    field is not one of its kind, or if status, reason and values disagree.
    """

    planned: Planned
    device: str
    attempt: int
    status: Status
    reason: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := self.values.keys() - _usual(self.kind).keys():
            raise ValueError(f"{self.id}: {sorted(unknown)}: not in a row of kind {self.kind}")
        ok = self.status is Status.OK
        if ok == bool(self.reason):
            raise ValueError(
                f"{self.id}: status {self.status} with reason {self.reason!r};"
                " every status but ok has a reason"
            )
        error, limit = self["error_ratio"], self["error_limit_ratio"]
        if ok and None not in (error, limit) and not error <= limit:
            raise ValueError(f"{self.id}: status ok with an error of {error:g}; {limit:g} passes")
        if not ok and self["block_ms"] is not None:
            raise ValueError(f"{self.id}: samples with status {self.status}; wanted none")
        if ok and self.kind == "wall" and None in (self["seq_len_low"], self["limited_by"]):
            raise ValueError(f"{self.id}: status ok without a length that fits and what limits it")

    @property
    def kind(self) -> Kind:
        return self.planned.kind

    @property
    def id(self) -> str:
        return self.planned.id

    def __getitem__(self, name: str) -> Any:
        """One of `values`; None if it is null or not of this kind."""
        return self.values.get(name)

    def row(self) -> dict[str, Any]:
        """The row as it is stored, JSON-ready."""
        known: dict[str, Any] = {"schema": SCHEMA, "kind": self.kind, "attempt": self.attempt}
        known |= {"device": self.device, "status": self.status.value, "reason": self.reason}
        known |= {**self.planned.fields(), **self.values}
        return {name: known.get(name, value) for name, value in _usual(self.kind).items()}


@cache
def _usual(kind: str) -> dict[str, Any]:
    """What each field of a row is if nothing was said of it, by name."""
    from .model import FIELDS  # needs pydantic, which takes 0.1 s; workers write no rows

    fields = FIELDS[kind].values()
    return {one.name: EMPTY.get(one.kind) if one.required else one.default for one in fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One trial of a wall: ok if the length fitted, oom if not.

    Another status says nothing about memory, only that the call did not go through.
    """

    seq_len: int
    status: Status
    reason: str
    spent_s: float

    def fields(self) -> dict[str, Any]:
        """As it stands in the row of its wall."""
        return asdict(self)


# ---- its line ------------------------------------------------------------------------------------

OF_THE_PLAN = (
    *("input_bytes", "work_flops", "work_exps", "minimal_bytes"),
    *("predicted_peak_bytes", "meta_peak_bytes"),
)
"""What is computed of a case before it runs, and of an absurd one is beyond 64 bits."""
ENCODER = json.JSONEncoder(allow_nan=False)
MOST_CHARACTERS = 4096  # of a reason, a log tail or a traceback
OF_AN_ERROR = ("started_utc", "spent_s", "phase", "exactness", "log_tail")
"""What the row of an error keeps, besides fields that every row has."""


class Written(Mapping[str, Any]):
    """The values of a record whose line was made already, in this process or in one with the same
    code: all fields of the row, which are read when somebody asks for one.
    """

    def __init__(self, line: bytes) -> None:
        self.line = line

    @cached_property
    def _row(self) -> Mapping[str, Any]:
        return parsed_row(self.line)

    def __getitem__(self, name: str) -> Any:
        return self._row[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._row)

    def __len__(self) -> int:
        return len(self._row)

    def __reduce__(self) -> tuple[type["Written"], tuple[bytes]]:
        return Written, (self.line,)


def written(record: Record) -> Record:
    """With its line, so that `stored` of it costs nothing: the work of who keeps many rows is done
    where they come from.
    """
    record, line = stored(record)
    return replace(record, values=Written(line))


def stored(record: Record) -> tuple[Record, bytes]:
    """The record and its line, long texts shortened; an error instead if the reader refuses it."""
    if isinstance(record.values, Written):
        return record, record.values.line
    record = _bounded(record)
    try:
        return record, _line(record)
    except ValueError as error:
        reason = f"its row does not fit the format: {error}"
    from .model import FIELDS

    fields = FIELDS[record.kind]
    kept = {
        name: value
        for name, value in record.values.items()
        if name in OF_AN_ERROR or fields[name].required
    }
    while True:  # leave out one value after the other, until the rest fits
        failed = replace(record, status=Status.ERROR, reason=reason, values=kept)
        try:
            return failed, _line(failed)
        except ValueError as error:
            if (name := _field_in(error)) not in kept:
                raise
            del kept[name]


def _field_in(error: ValueError) -> str:
    """The field that a refusal begins with, as `probes[3]: ...`."""
    return re.split(r"\W", str(error), maxsplit=1)[0]


def _line(record: Record) -> bytes:
    """Raises ValueError: `field: what was found, what was wanted`."""
    row = record.row()
    try:
        line = f"{ENCODER.encode(row)}\n".encode()
    except (ValueError, TypeError, RecursionError):  # says of which field
        texts = [f'"{name}": {_json(name, value)}' for name, value in row.items()]
        line = f"{{{', '.join(texts)}}}\n".encode()
    if len(line) > LINE_CAP_BYTES:
        sizes = {name: len(_json(name, value)) for name, value in row.items()}
        name = max(sizes, key=sizes.__getitem__)
        raise ValueError(
            f"{name}: found {sizes[name]} bytes, wanted a row of at most {LINE_CAP_BYTES >> 20} MiB"
        )
    parsed_row(line)
    return line


def _json(name: str, value: Any) -> str:
    """Raises ValueError, as `_line`."""
    try:
        return ENCODER.encode(value)
    except ValueError as error:
        why = f"not JSON ({error}); wanted null where there is no number"
    except TypeError:
        why = f"found {type(value).__name__}, wanted what JSON has"
    except RecursionError:
        why = "found lists in lists too deep to store, wanted flat ones"
    raise ValueError(f"{name}: {why}")


def _bounded(record: Record) -> Record:
    """With the begin of a long reason and the end of a long log; without what exceeds 64 bits."""
    reason, tail = record.reason, record["log_tail"]
    if beyond := [name for name in OF_THE_PLAN if _is_beyond(record[name])]:
        record = replace(record, values={**record.values, **dict.fromkeys(beyond)})
    if isinstance(reason, str) and len(reason) > MOST_CHARACTERS:
        reason = f"{reason[:MOST_CHARACTERS]}... ({len(reason)} characters)"
        record = replace(record, reason=reason)
    if isinstance(tail, str) and len(tail) > MOST_CHARACTERS:
        record = replace(record, values={**record.values, "log_tail": tail[-MOST_CHARACTERS:]})
    return record


def _is_beyond(value: Any) -> bool:
    return type(value) is int and value >= 1 << 63
