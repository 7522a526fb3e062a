"""Findings of studies as reports read them: of several processes that timed the same one, with its
interval.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from ...harness.stats.intervals import latency_interval, mean_interval
from .row_groups import by

Found = Mapping[str, Any]
UNITS = ("_ms", "_ratio", "_exponent")
OWN = ("process", "contended_blocks", "blocks", "complaint")
"""What each process has of its own, beside its numbers."""


def joined(found: object) -> list[Found]:
    """Objects of `studies` of a run, but one for all processes that timed the same."""
    every = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    places = by(range(len(every)), lambda at: _timed(every[at]) or (at,)).values()
    return [
        _one([every[at] for at in same]) if len(same) > 1 else every[same[0]] for same in places
    ]


def _timed(one: Found) -> tuple[object, ...]:
    """What was timed: all but what each process has for itself; () where nothing was."""
    if one.get("process") is None:
        return ()
    kept = (pair for pair in one.items() if pair[0] not in OWN and not pair[0].endswith(UNITS))
    return tuple(map(repr, kept))  # values may be lists


def _one(same: Sequence[Found]) -> Found:
    """Each number with the interval over processes: the same as that of latencies."""
    flags = _counts(same, "contended_blocks")
    found = dict(same[0]) | {
        "process": None,
        "processes": len(same),
        "blocks": sum(_counts(same, "blocks")),
        "contended_blocks": sum(flags) if len(flags) == len(same) else None,
    }
    for name in same[0]:
        base, _, unit = name.rpartition("_")
        # bounds of one process say nothing of the others
        if name.endswith(UNITS) and not base.endswith(("_low", "_high")):
            names = (name, f"{base}_low_{unit}", f"{base}_high_{unit}")
            found |= zip(names, _interval([one.get(name) for one in same], unit), strict=True)
    if "complaint" in found:
        found["complaint"] = next(filter(None, (one.get("complaint") for one in same)), "")
    return found


def _counts(same: Sequence[Found], name: str) -> list[int]:
    return [count for one in same if type(count := one.get(name)) is int]


def _interval(values: Sequence[Any], unit: str) -> tuple[float | None, ...]:
    """The value and its bounds; without bounds if all are equal."""
    known = [one for one in values if type(one) in (int, float) and isfinite(one)]
    if len(known) < len(values):
        return None, None, None
    if len(set(known)) == 1:
        return known[0], None, None
    if unit == "exponent" or min(known) <= 0:
        one = mean_interval(known, "process")
    else:
        one = latency_interval([[[value]] for value in known])
    return tuple(end if isfinite(end) else None for end in (one.value, one.low, one.high))
