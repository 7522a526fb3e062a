"""Findings of studies as reports read them: of several processes that timed the same one with its
interval, and a model of those that a subject relies on.

Fields without a default must be there; fields that no model names are shown in the table.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, TypeVar

from ...harness.rows.findings import Finding, Maybe, findings_of
from ...harness.stats.intervals import latency_interval, mean_interval
from .row_groups import by

F = TypeVar("F", bound=Finding)
Found = Mapping[str, Any]
UNITS = ("_ms", "_ratio", "_exponent")
OWN = ("process", "contended_blocks", "blocks", "complaint")
"""What each process has of its own, beside its numbers."""


class BatchInvariance(Finding):
    """How far a backend's output in a batch is from that of another call, and of one alone."""

    STUDY = "batch_invariance"
    backend: str
    batch_error_l2_ratio: float


class EachAlone(Finding):
    """What a call for each sequence costs beside one for the batch, whose bits depend on it.

    `contended_blocks`: of `blocks`, those that other work disturbed; absent in rows of earlier
    versions. `processes`: how many the ratio is taken from, once it is read.
    """

    STUDY = "batch_invariance"
    backend: str
    kv_seq_len: int
    batch: int
    alone_ratio: float
    alone_low_ratio: Maybe = None
    alone_high_ratio: Maybe = None
    alone_peak_bytes: int | None = None
    batch_peak_bytes: int | None = None
    contended_blocks: int | None = None
    blocks: int | None = None
    processes: int = 1


# ---- of several processes ------------------------------------------------------------------------


def read_findings(model: type[F], found: object) -> list[F]:
    """Those of the model's study, as `findings_of`, but one for all processes that timed it."""
    return findings_of(model, joined(found))


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
