"""The verdict of an audit on each compute capability.

It passes if every tuned kernel compiles, none spills in a loop or waits for each matrix product,
and each list of configurations has one that fits an SM.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..rows.record import Status
from .kernel_faults import is_serialized, spills

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityVerdict:
    """The rows of one compute capability, and those with a fault.

    `without_fit`: a row for each kind of problem of which no configuration fits an SM.
    """

    compute_capability: str
    architecture: str | None
    rows: Sequence[Row]
    failed: Sequence[Row]
    interrupted: Sequence[Row]
    spilling: Sequence[Row]
    serialized: Sequence[Row]
    without_fit: Sequence[Row]
    unread: Sequence[Row]

    @property
    def is_good(self) -> bool:
        faults = (self.failed, self.interrupted, self.spilling, self.serialized)
        return not any((*faults, self.without_fit, self.unread))


def verdicts(rows: Iterable[Row]) -> list[CapabilityVerdict]:
    by_capability: dict[str, list[Row]] = {}
    for row in rows:
        by_capability.setdefault(row["compute_capability"], []).append(row)
    return [_verdict(capability, rows) for capability, rows in by_capability.items()]


def _verdict(capability: str, rows: list[Row]) -> CapabilityVerdict:
    return CapabilityVerdict(
        compute_capability=capability,
        architecture=rows[0]["architecture"],
        rows=rows,
        failed=[row for row in rows if row["status"] not in (Status.OK, Status.INTERRUPTED)],
        interrupted=[row for row in rows if row["status"] == Status.INTERRUPTED],
        spilling=[row for row in rows if spills(row)],
        serialized=[row for row in rows if is_serialized(row)],
        without_fit=_without_fit(rows),
        unread=[row for row in rows if row["status"] == Status.OK and spills(row) is None],
    )


def _without_fit(rows: list[Row]) -> list[Row]:
    """The first row of every list of configurations of which none fits: the kernel cannot run."""
    names = ("kernel", "dtype", "d_k", "d_v", "causal", "masked", "tf32")
    lists: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["sm_block_count"] is not None:
            lists.setdefault(tuple(row[name] for name in names), []).append(row)
    return [same[0] for same in lists.values() if not any(row["sm_block_count"] for row in same)]
