"""What an audit comes to, per GPU: whether every tuned kernel compiles, none spills, and each list
has one that fits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..record import Status

Row = Mapping[str, Any]
MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityVerdict:
    """Of one compute capability. `homeless`: kinds of problem for which no configuration fits an
    SM, by one of their rows.
    """

    compute_capability: str
    architecture: str | None
    rows: Sequence[Row]
    failed: Sequence[Row]
    interrupted: Sequence[Row]
    spilling: Sequence[Row]
    homeless: Sequence[Row]
    unread: Sequence[Row]

    @property
    def is_good(self) -> bool:
        return not (
            self.failed or self.interrupted or self.spilling or self.homeless or self.unread
        )


def verdicts(rows: Iterable[Row]) -> list[CapabilityVerdict]:
    by_capability: dict[str, list[Row]] = {}
    for row in rows:
        by_capability.setdefault(row["compute_capability"], []).append(row)
    return [_verdict(capability, members) for capability, members in by_capability.items()]


def _verdict(capability: str, rows: list[Row]) -> CapabilityVerdict:
    return CapabilityVerdict(
        compute_capability=capability,
        architecture=rows[0]["architecture"],
        rows=rows,
        failed=[row for row in rows if row["status"] not in (Status.OK, Status.INTERRUPTED)],
        interrupted=[row for row in rows if row["status"] == Status.INTERRUPTED],
        spilling=[row for row in rows if spills(row)],
        homeless=_homeless(rows),
        unread=[row for row in rows if row["status"] == Status.OK and spills(row) is None],
    )


def spills(row: Row) -> bool | None:
    """None where the cubin could not be read. The stack holds nothing but spilled registers: our
    kernels have no local arrays.
    """
    read = [
        row[name]
        for name in ("thread_stack_bytes", "spill_store_bytes", "spill_load_bytes")
        if row[name] is not None
    ]
    return any(read) if read else None


def _homeless(rows: list[Row]) -> list[Row]:
    """The likeliest row of every list of which nothing fits: there the kernel cannot run at all."""
    lists: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["sm_block_count"] is not None:
            kind = (
                row["kernel"],
                row["dtype"],
                row["d_k"],
                row["d_v"],
                row["causal"],
                row["masked"],
                row["tf32"],
            )
            lists.setdefault(kind, []).append(row)
    return [
        members[0]
        for members in lists.values()
        if not any(row["sm_block_count"] for row in members)
    ]


def sentence(verdict: CapabilityVerdict) -> str:
    """One line on one compute capability."""
    name = verdict.compute_capability + (
        f" ({verdict.architecture})" if verdict.architecture else ""
    )
    total = "1 kernel" if len(verdict.rows) == 1 else f"{len(verdict.rows)} kernels"
    complaints = [
        f"{len(rows)} of {total} {what} ({_named(rows)})"
        for what, rows in (
            ("did not compile", verdict.failed),
            ("were not reached", verdict.interrupted),
            ("spill", verdict.spilling),
            ("have no configuration that fits an SM", verdict.homeless),
            ("could not be read", verdict.unread),
        )
        if rows
    ]
    if complaints:
        return f"{name}: FAILED, {'; '.join(complaints)}"
    warps = [row["sm_warp_count"] for row in verdict.rows if row["sm_warp_count"]]
    tight = sum(row["sm_block_count"] == 0 for row in verdict.rows)
    least = f"{min(warps)} to " if warps and min(warps) < max(warps) else ""
    held = (
        f"; {least}{max(warps)} of {verdict.rows[0]['sm_most_warp_count']} warps per SM"
        if warps
        else ""
    )
    passed_over = f"; {tight} do not fit an SM and are passed over when tuned" if tight else ""
    return f"{name}: ok, {total}, none spills{held}{passed_over}"


def _named(rows: Sequence[Row]) -> str:
    named = ", ".join(row["case"] for row in rows[:MOST_NAMED])
    return named + (f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else "")
