"""What a comparison needs of a row: medians instead of samples, so two long runs fit in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean, median, median_low
from typing import Any

from ...harness.stats.intervals import Samples
from ..data.decode import Traffic, traffic
from ..data.exactness import exactness_note
from ..data.processor_time import (
    PROCESSOR_TIMES,
    in_most,
    is_known,
    processor_samples,
    typical_ms,
)
from ..data.row_groups import AXES, Row, by
from ..data.run_meta import NOT_REACHED, not_reached

# Of a call in ms or J: from less than any clock or counter resolves to 30 years.
PLAUSIBLE = (1e-9, 1e12)
CLOCK_STEP_RATIO = 0.02  # a GPU's clock moves in steps of about 1 %
TURNS = "turns"  # the session of both sides that were measured in turns, so that they are paired


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSamples:
    """One side of a compared case.

    `block_ms` has one median per block, `energy_j` the energy of a call per window; both are nested
    by process. `processor_ms`: of a typical call in all threads.
    """

    case: str
    backend: str
    exactness: str
    note: str  # what an inexact backend's result is
    problem: Row
    status: str
    reason: str
    session: str | None
    block_ms: Samples
    energy_j: Samples
    kernel: str | None
    peak_bytes: int | None
    workspace_bytes: int | None
    blocks: int
    contended_blocks: int
    throttled_blocks: int
    clock_mhz: float | None
    traffic: Traffic | None = None  # of a decode step
    replica: int | None = None
    input_order: str = "heads"  # in memory
    spent_s: float | None = None
    processor_ms: float | None = None

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def measured(self) -> list[str]:
        """The metrics that it has a value of."""
        values = {
            "latency": any(map(any, self.block_ms)),
            "peak_bytes": self.peak_bytes is not None,
            "energy_per_call": bool(self.energy_j),
        }
        return [metric for metric, is_known in values.items() if is_known]

    @property
    def disturbed(self) -> bool:
        """Other work competed for the cores in most of its blocks."""
        return in_most(self.contended_blocks, self.blocks)


def case_samples(row: Mapping[str, Any], run: Mapping[str, Any] | None = None) -> CaseSamples:
    """`run`: run.json, of which the memory bandwidth is known.

    Raises ValueError if a block's median is not a plausible time."""
    block_ms = tuple(
        tuple((median(block),) if block else () for block in process)
        for process in row.get("block_ms") or []
    )
    medians = [block[0] for process in block_ms for block in process if block]
    if medians and not (PLAUSIBLE[0] < min(medians) and max(medians) < PLAUSIBLE[1]):
        raise ValueError("block_ms: a block's median is no time that a clock could have read")
    ok = row["status"] == "ok"
    used = processor_samples(row, PROCESSOR_TIMES[0])
    return CaseSamples(
        case=row["case"],
        backend=row["backend"],
        exactness=row.get("exactness") or "exact",
        note=exactness_note(row),
        problem={axis: row.get(axis) for axis in AXES if axis != "run"},
        status=row["status"],
        reason=row.get("reason") or "",
        session=row.get("session"),
        block_ms=block_ms if ok else (),
        energy_j=_energies(row) if ok else (),
        kernel=row.get("kernel"),
        peak_bytes=row.get("peak_bytes") if ok else None,
        workspace_bytes=row.get("workspace_bytes") if ok else None,
        blocks=len(medians),
        contended_blocks=row.get("contended_blocks") or 0,
        throttled_blocks=row.get("throttled_blocks") or 0,
        clock_mhz=_clock_mhz(row),
        traffic=traffic(row, run) if ok and run is not None else None,
        replica=row.get("replica"),
        input_order=row.get("input_order") or "heads",
        spent_s=row.get("spent_s"),
        processor_ms=typical_ms(used) if ok and is_known(used) else None,
    )


def not_started(planned: Mapping[str, Any], device: str) -> CaseSamples:
    """A planned case without a row."""
    return case_samples({"device": device, **planned, **not_reached()})


def _energies(row: Mapping[str, Any]) -> Samples:
    by_process: dict[Any, list[tuple[float]]] = {}
    for window in row.get("windows") or []:
        energy_j = window.get("energy_j")
        if window["way"] == "eager" and type(energy_j) in (int, float):
            per_call_j = energy_j / window["calls"]
            if PLAUSIBLE[0] < per_call_j < PLAUSIBLE[1]:
                by_process.setdefault(window.get("process"), []).append((per_call_j,))
    return tuple(map(tuple, by_process.values()))


def _clock_mhz(row: Mapping[str, Any]) -> float | None:
    blocks = [block for process in row.get("conditions") or [] for block in process]
    readings = (block.get("sm_clock_mhz") for block in blocks)
    clocks = [clock for clock in readings if clock is not None and clock > 0]
    return float(median(clocks)) if clocks else None


# ---- several runs of one side, measured alternately with those of the other ----------------------


def merge_runs(runs: Sequence[Sequence[CaseSamples]]) -> list[CaseSamples]:
    """The runs of one side as one: a value per run, so that a turn is a unit.

    Slow drift (a neighbour on the host, heat) affects both runs of a turn equally. What changes
    between the two differs from turn to turn, so it widens the interval. A case that failed in some
    run is its first failure; one that some run lacks was not reached.
    """
    by_case = by((case for run in runs for case in run), lambda case: case.case)
    return [
        _merged(cases)
        if len(cases) == len(runs)
        else replace(cases[0], status=NOT_REACHED, reason="not in every run of its side")
        for cases in by_case.values()
    ]


def _merged(cases: Sequence[CaseSamples]) -> CaseSamples:
    if failed := [case for case in cases if not case.ok]:
        return failed[0]
    clocks = [case.clock_mhz for case in cases if case.clock_mhz is not None]
    peaks = [case.peak_bytes for case in cases if case.peak_bytes is not None]
    kept = [case.workspace_bytes for case in cases if case.workspace_bytes is not None]
    used = [case.processor_ms for case in cases if case.processor_ms is not None]
    return replace(
        cases[0],
        session=TURNS,
        block_ms=_values([case.block_ms for case in cases]),
        energy_j=_values([case.energy_j for case in cases]),
        peak_bytes=median_low(peaks) if peaks else None,
        workspace_bytes=median_low(kept) if len(kept) == len(cases) else None,
        blocks=sum(case.blocks for case in cases),
        contended_blocks=sum(case.contended_blocks for case in cases),
        throttled_blocks=sum(case.throttled_blocks for case in cases),
        clock_mhz=median(clocks) if clocks else None,
        processor_ms=median(used) if len(used) == len(cases) else None,
    )


def _values(runs: Sequence[Samples]) -> Samples:
    """One value per run, the geometric mean of its processes' medians; empty if a run has none."""

    def logs_of(run: Samples) -> list[float]:
        measured = ([block for block in process if block] for process in run)
        return [median(log(median(block)) for block in some) for some in measured if some]

    logs = [*map(logs_of, runs)]
    return tuple(((exp(fmean(run)),),) for run in logs) if all(logs) else ()


def disturbances(slow: CaseSamples, fast: CaseSamples, *, paired: bool) -> list[str]:
    """Reasons that alone could explain why the slow side is slow.

    `paired`: a lower clock is no reason, since a backend may cause it itself, and only what
    disturbed one side and not the other is a reason: blocks that were measured alternately are
    disturbed alike.
    """

    def disturbed(blocks: str) -> bool:
        is_slow, is_fast = (in_most(getattr(case, blocks), case.blocks) for case in (slow, fast))
        return is_slow and not (paired and is_fast)

    codes = ["contended"] if disturbed("contended_blocks") else []
    codes += ["throttled"] if disturbed("throttled_blocks") else []
    if (
        not paired
        and slow.clock_mhz
        and fast.clock_mhz
        and log(fast.clock_mhz / slow.clock_mhz) > CLOCK_STEP_RATIO
    ):
        codes.append("clocks_differ")
    return codes
