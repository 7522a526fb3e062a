"""One row of results, of any kind. model.py has the fields of each kind."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Literal, Protocol, get_args

from .run_files import SCHEMA
from .status import FAILURES, RETRIED, Status

__all__ = ["FAILURES", "RETRIED", "Status"]  # what is defined here is public, too

EMPTY = {"str": "", "list": [], "object": {}}
"""What a field that must have a value is if nothing was said of it, by its type."""


Kind = Literal["latency", "wall", "study", "kernel"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Blocks = list[list[list[float]]]
"""Samples, [process][block][call]."""


class Planned(Protocol):
    """What a row is about: a Case, Wall or PlannedStudy of cases.py, or a PlannedKernel."""

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
