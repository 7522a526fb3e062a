"""What is wrong with audited kernels, by their rows, and the verdict on each compute capability.

It passes if every tuned kernel compiles, none spills in a loop or waits for each matrix product,
and each list of configurations has one that fits an SM. One rule for the audit and its page.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
SERIALIZED = "instructions are serialized"  # in ptxas's notes, whatever the reason
NOT_REACHED = ("interrupted", "not reached")
MOST_NAMED = 3


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityVerdict:
    """The rows of one compute capability, and those with a fault, by what the fault is."""

    compute_capability: str
    architecture: str | None
    rows: Sequence[Row]
    faults: Mapping[str, Sequence[Row]]

    @property
    def is_good(self) -> bool:
        return not any(self.faults.values())

    @property
    def gpu(self) -> str:
        """`9.0 (Hopper: H100)`."""
        return f"{self.compute_capability}{f' ({self.architecture})' if self.architecture else ''}"

    @property
    def words(self) -> str:
        """`ok, 6 kernels, none spills in a loop; 8 of 64 warps per SM`."""
        total = "1 kernel" if len(self.rows) == 1 else f"{len(self.rows)} kernels"
        found = [
            f"{len(rows)} of {total} {what} ({_named(rows)})"
            for what, rows in self.faults.items()
            if rows
        ]
        said = f"FAILED, {'; '.join(found)}" if found else f"ok, {total}, none spills in a loop"
        return said + self._held()

    @property
    def sentence(self) -> str:
        return f"{self.gpu}: {self.words}"

    def _held(self) -> str:
        """What an SM holds of them."""
        counts = ((row.get("sm_warp_count"), row.get("sm_most_warp_count")) for row in self.rows)
        held = [(warps, most) for warps, most in counts if warps and most]
        said = ""
        if held:
            (least, _), (most, of) = min(held), max(held)
            said = f"; {f'{least} to ' if least < most else ''}{most} of {of} warps per SM"
        too_big = sum(row.get("sm_block_count") == 0 for row in self.rows)
        return f"{said}; {too_big} too big for an SM, skipped when tuning" if too_big else said


def verdicts(rows: Iterable[Row]) -> list[CapabilityVerdict]:
    by_capability: dict[str, list[Row]] = {}
    for row in rows:
        by_capability.setdefault(row["compute_capability"], []).append(row)
    return [
        CapabilityVerdict(
            compute_capability=capability,
            architecture=next((row["architecture"] for row in of if row.get("architecture")), None),
            rows=of,
            faults={
                "did not compile": [row for row in of if row["status"] not in ("ok", *NOT_REACHED)],
                "were not reached": [row for row in of if row["status"] in NOT_REACHED],
                "spill": [row for row in of if spills(row)],
                "run their matrix products one at a time": list(filter(is_serialized, of)),
                "have no configuration that fits an SM": _without_fit(of),
                "could not be read": [
                    row for row in of if row["status"] == "ok" and spills(row) is None
                ],
            },
        )
        for capability, of in by_capability.items()
    ]


def _without_fit(rows: list[Row]) -> list[Row]:
    """The first row of every list of configurations of which none fits: the kernel cannot run."""
    names = ("kernel", "dtype", "d_k", "d_v", "causal", "masked", "tf32")
    lists: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.get("sm_block_count") is not None:
            lists.setdefault(tuple(row[name] for name in names), []).append(row)
    return [same[0] for same in lists.values() if not any(row["sm_block_count"] for row in same)]


def _named(rows: Sequence[Row]) -> str:
    named = ", ".join(row["case"] for row in rows[:MOST_NAMED])
    return named + (f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else "")
