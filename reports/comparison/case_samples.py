"""What a comparison takes from one row: medians instead of samples, so that two long runs fit into
memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from ...harness.stats import Samples
from ..data.exactness import note
from ..data.row_groups import AXES, Row

NOT_REACHED = "not reached"
UNFINISHED = (NOT_REACHED, "interrupted")
SENSIBLE = (
    1e-9,
    1e12,
)  # of a call in ms or J: from less than any clock or counter can tell to 30 years of time


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A case as one side of a comparison. `block_ms` holds a median per block, `energy_j` the
    energy of a call per window, both nested.
    """

    case: str
    backend: str
    exactness: str
    note: str  # of a backend that is not exact: what its result is
    problem: Row
    status: str
    reason: str
    session: str | None
    block_ms: Samples
    energy_j: Samples
    peak_bytes: int | None
    blocks: int
    contended_blocks: int
    throttled_blocks: int
    clock_mhz: float | None

    @property
    def ok(self) -> bool:
        return self.status == "ok"


def side_of(row: Mapping[str, Any]) -> Side:
    """Raises ValueError where a sample is no time that could have been measured."""
    block_ms = tuple(
        tuple((median(block),) if block else () for block in process)
        for process in row.get("block_ms") or []
    )
    found = [block[0] for process in block_ms for block in process if block]
    if found and not (SENSIBLE[0] < min(found) and max(found) < SENSIBLE[1]):
        raise ValueError("block_ms: a block's median is no time that a clock could have read")
    return Side(
        case=row["case"],
        backend=row["backend"],
        exactness=row.get("exactness") or "exact",
        note=note(row),
        problem={axis: row.get(axis) for axis in AXES if axis != "run"},
        status=row["status"],
        reason=row.get("reason") or "",
        session=row.get("session"),
        block_ms=block_ms if row["status"] == "ok" else (),
        energy_j=_energies(row) if row["status"] == "ok" else (),
        peak_bytes=row.get("peak_bytes") if row["status"] == "ok" else None,
        blocks=len(found),
        contended_blocks=row.get("contended_blocks") or 0,
        throttled_blocks=row.get("throttled_blocks") or 0,
        clock_mhz=_clock_mhz(row),
    )


def never(planned: Mapping[str, Any], device: str) -> Side:
    """A case that was planned and has no row."""
    return side_of(
        {
            "device": device,
            **planned,
            "status": NOT_REACHED,
            "reason": "planned; the run ended before it started",
        }
    )


def _energies(row: Mapping[str, Any]) -> Samples:
    by_process: dict[Any, list[tuple[float]]] = {}
    for window in row.get("windows") or []:
        energy_j = window.get("energy_j")
        if (
            window["way"] == "eager"
            and type(energy_j) in (int, float)
            and SENSIBLE[0] < energy_j / window["calls"] < SENSIBLE[1]
        ):
            by_process.setdefault(window.get("process"), []).append((energy_j / window["calls"],))
    return tuple(map(tuple, by_process.values()))


def _clock_mhz(row: Mapping[str, Any]) -> float | None:
    blocks = [block for process in row.get("conditions") or [] for block in process]
    clocks = [
        clock for block in blocks if (clock := block.get("sm_clock_mhz")) is not None and clock > 0
    ]
    return float(median(clocks)) if clocks else None
