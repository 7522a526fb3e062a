"""The verdict of an audit on each compute capability.

It passes if every tuned kernel compiles, none spills in a loop or waits for each matrix product,
and each list of configurations has one that fits an SM.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..record import Status

Row = Mapping[str, Any]
SERIALIZED = "instructions are serialized"  # in ptxas's notes, whatever the reason


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


def spills(row: Row) -> bool | None:
    """Whether it spills registers in a loop; None if the cubin could not be read.

    What is spilled outside of loops is stored and loaded once per tile. Where only the stack is
    known it decides: our kernels have no local arrays, so it holds nothing but spilled registers.
    """
    inside = ("loop_spill_store_bytes", "loop_spill_load_bytes")
    anywhere = ("thread_stack_bytes", "spill_store_bytes", "spill_load_bytes")
    for names in (inside, anywhere):
        known = [value for name in names if (value := row.get(name)) is not None]
        if known:
            return any(known)
    return None


def is_serialized(row: Row) -> bool:
    """Whether its matrix products run one at a time, by its machine code or by what ptxas says."""
    notes = row.get("ptxas_notes") or ()
    return bool(row.get("serialized")) or any(SERIALIZED in note for note in notes)


def _without_fit(rows: list[Row]) -> list[Row]:
    """The first row of every list of configurations of which none fits: the kernel cannot run."""
    names = ("kernel", "dtype", "d_k", "d_v", "causal", "masked", "tf32")
    lists: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["sm_block_count"] is not None:
            lists.setdefault(tuple(row[name] for name in names), []).append(row)
    return [same[0] for same in lists.values() if not any(row["sm_block_count"] for row in same)]
