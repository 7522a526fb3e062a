"""Several runs of each side, measured alternately: one value per run, so that a turn is a unit.

Slow drift (a neighbour on the host, heat) affects both runs of a turn equally. What changes between
the two runs differs from turn to turn, so it widens the interval.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from statistics import fmean, median, median_low

from ...harness.stats.intervals import Samples
from ..data.run_meta import NOT_REACHED
from .case_samples import CaseSamples

SESSION = "turns"  # equal on both sides, so that their values are paired


def merge_runs(runs: Sequence[Sequence[CaseSamples]]) -> list[CaseSamples]:
    """The runs of one side as one: an entry per case, in the order of the first run that has it.

    A case that failed in some run is its first failure; one that some run lacks was not reached.
    """
    by_case: dict[str, list[CaseSamples]] = {}
    for run in runs:
        for case in run:
            by_case.setdefault(case.case, []).append(case)
    return [
        _merged(cases) if len(cases) == len(runs) else _incomplete(cases[0])
        for cases in by_case.values()
    ]


def _merged(cases: Sequence[CaseSamples]) -> CaseSamples:
    if failed := [case for case in cases if not case.ok]:
        return failed[0]
    clocks = [case.clock_mhz for case in cases if case.clock_mhz is not None]
    peaks = [case.peak_bytes for case in cases if case.peak_bytes is not None]
    kept = [case.workspace_bytes for case in cases if case.workspace_bytes is not None]
    return replace(
        cases[0],
        session=SESSION,
        block_ms=_values([case.block_ms for case in cases]),
        energy_j=_values([case.energy_j for case in cases]),
        peak_bytes=median_low(peaks) if peaks else None,
        workspace_bytes=median_low(kept) if len(kept) == len(cases) else None,
        blocks=sum(case.blocks for case in cases),
        contended_blocks=sum(case.contended_blocks for case in cases),
        throttled_blocks=sum(case.throttled_blocks for case in cases),
        clock_mhz=median(clocks) if clocks else None,
    )


def _incomplete(case: CaseSamples) -> CaseSamples:
    """A case that not every run planned."""
    return replace(
        case,
        status=NOT_REACHED,
        reason="not in every run of its side",
        block_ms=(),
        energy_j=(),
        peak_bytes=None,
        workspace_bytes=None,
    )


def _values(runs: Sequence[Samples]) -> Samples:
    """One value per run, the geometric mean of its processes' medians; empty if a run has none."""
    logs = [
        [
            median(log(median(block)) for block in process if block)
            for process in run
            if any(process)
        ]
        for run in runs
    ]
    return tuple(((exp(fmean(run)),),) for run in logs) if all(logs) else ()
