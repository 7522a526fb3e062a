"""Findings of studies as reports read them: what several processes timed, as one each."""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, TypeVar

from ...harness.rows.findings import Finding, Timed, findings_of
from ...harness.stats.intervals import latency_interval, mean_interval
from .row_groups import by

F = TypeVar("F", bound=Finding)
T = TypeVar("T", bound=Timed)
UNITS = ("_ms", "_ratio", "_exponent")
OWN = ("process", "contended_blocks", "blocks", "complaint")
"""What each process has of its own, beside its numbers."""


def read_findings(model: type[F], found: object) -> list[F]:
    """Those of the model's study, as `findings_of`, but one for all processes that timed it."""
    every = findings_of(model, found)
    return list(_together(every)) if issubclass(model, Timed) else every


def _together(found: Iterable[Any]) -> Iterable[Any]:
    for same in by(found, _what).values():
        yield same[0] if len(same) == 1 else _of_processes(same)


def _what(one: Timed) -> tuple[Any, ...]:
    """What was timed: all but numbers with a unit."""
    return tuple(value for name, value in one if name not in OWN and not name.endswith(UNITS))


def _of_processes(same: Sequence[T]) -> T:
    """Each number with the interval over processes: the same as that of latencies."""
    first = same[0]
    flags = [one.contended_blocks for one in same if one.contended_blocks is not None]
    found: dict[str, Any] = {
        "processes": len(same),
        "process": None,
        "blocks": sum(one.blocks or 0 for one in same),
        "contended_blocks": sum(flags) if len(flags) == len(same) else None,
    }
    fields = type(first).model_fields
    for name in fields:
        base, _, unit = name.rpartition("_")
        low, high = f"{base}_low_{unit}", f"{base}_high_{unit}"
        if low in fields and high in fields:
            ends = _interval([one[name] for one in same], unit)
            found |= dict(zip((name, low, high), ends, strict=True))
    if "complaint" in fields:
        found["complaint"] = next((one["complaint"] for one in same if one["complaint"]), "")
    return first.model_copy(update=found)


def _interval(values: Sequence[float | None], unit: str) -> tuple[float | None, ...]:
    known = [one for one in values if one is not None]
    if len(known) < len(values):
        return None, None, None
    if unit == "exponent":
        one = mean_interval(known, "process")
    else:
        one = latency_interval([[[value]] for value in known])
    return tuple(end if isfinite(end) else None for end in (one.value, one.low, one.high))
