"""Several runs of one side, measured in turns with those of the other: one value per run, so that a
turn is a unit.

What moves slowly (a neighbour on the host, heat) touches both runs of a turn alike, and what moves
between the two of them differs from turn to turn and so widens the interval.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from statistics import fmean, median, median_low

from ...harness.stats import Samples
from .case_samples import NOT_REACHED, Side

SESSION = "turns"  # equal on both sides, so that their values are paired


def in_turns(turns: Sequence[Sequence[Side]]) -> list[Side]:
    """One side per case, in the order of the first run that has it. A case that did not end well in
    every run is the first such one.
    """
    by_case: dict[str, list[Side]] = {}
    for sides in turns:
        for side in sides:
            by_case.setdefault(side.case, []).append(side)
    return [
        _together(sides) if len(sides) == len(turns) else _partial(sides[0])
        for sides in by_case.values()
    ]


def _together(sides: Sequence[Side]) -> Side:
    if failed := [side for side in sides if not side.ok]:
        return failed[0]
    clocks = [side.clock_mhz for side in sides if side.clock_mhz is not None]
    peaks = [side.peak_bytes for side in sides if side.peak_bytes is not None]
    return replace(
        sides[0],
        session=SESSION,
        block_ms=_values([side.block_ms for side in sides]),
        energy_j=_values([side.energy_j for side in sides]),
        peak_bytes=median_low(peaks) if peaks else None,
        blocks=sum(side.blocks for side in sides),
        contended_blocks=sum(side.contended_blocks for side in sides),
        throttled_blocks=sum(side.throttled_blocks for side in sides),
        clock_mhz=median(clocks) if clocks else None,
    )


def _partial(side: Side) -> Side:
    """A case that not every run planned."""
    return replace(
        side,
        status=NOT_REACHED,
        reason="not in every run of its side",
        block_ms=(),
        energy_j=(),
        peak_bytes=None,
    )


def _values(runs: Sequence[Samples]) -> Samples:
    """A value per run, nested as samples are: the geometric mean of its processes' medians. Empty
    where a run has none.
    """
    logs = [
        [
            median(log(median(block)) for block in process if block)
            for process in samples
            if any(process)
        ]
        for samples in runs
    ]
    return tuple(((exp(fmean(run)),),) for run in logs) if all(logs) else ()
