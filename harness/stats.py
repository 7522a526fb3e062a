"""Intervals for latencies: the one module that the stopping rule and the reports share, so that they never disagree.

Samples come as `block_ms`, nested [process][block][call], milliseconds. Calls within a block share drift, so a block counts
once, by its median; blocks within a process share its layout, so where there are several processes a process counts once.
Intervals are Student t on logarithms: latencies are positive and skewed, and ratios are what is compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, nan, sqrt
from statistics import mean, median, stdev

Samples = Sequence[Sequence[Sequence[float]]]
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with its 95 % interval; NaN bounds where it cannot be had, and then `reason` says why.

    `reason` also stands beside a good interval that means less than it seems: one process only.
    """

    value: float
    low: float
    high: float
    units: int
    reason: str = ""

    @property
    def half_width_ratio(self) -> float:
        """Half the width on the log scale: 0.03 means within 3 % either way."""
        return (log(self.high) - log(self.low)) / 2 if self.low > 0 else nan


def latency_interval(block_ms: Samples) -> Interval:
    """The typical latency in ms: geometric mean of the units' medians, unit = process, or block where there is one process."""
    logs, reason = _units([[log(median(block)) for block in process if block] for process in block_ms])
    return _interval(logs, reason)


def ratio_interval(numerator: Samples, denominator: Samples) -> Interval:
    """Latency ratio of two members that were measured in the same blocks, paired block by block (mean log-ratio).

    Raises ValueError where the two have no block in common.
    """
    pairs = [
        [log(median(a) / median(b)) for a, b in zip(p, q, strict=False) if a and b] for p, q in zip(numerator, denominator, strict=False)
    ]
    if not any(pairs):
        raise ValueError("no block in common; compare members of one session")
    logs, reason = _units(pairs)
    return _interval(logs, reason)


def _units(processes: list[list[float]]) -> tuple[list[float], str]:
    """The independent units: one per process, or the blocks of a single process."""
    filled = [blocks for blocks in processes if blocks]
    if len(filled) > 1:
        return [mean(blocks) for blocks in filled], ""
    return (filled[0] if filled else []), "one process: run-to-run variation not included"


def _interval(logs: list[float], reason: str) -> Interval:
    if not logs:
        return Interval(value=nan, low=nan, high=nan, units=0, reason="no samples")
    centre = mean(logs)
    if len(logs) == 1:
        return Interval(value=exp(centre), low=nan, high=nan, units=1, reason="one block only: no interval")
    # Imported here: scipy costs 0.2 s, and most commands draw no interval.
    from scipy.special import stdtrit

    reach = float(stdtrit(len(logs) - 1, (1 + CONFIDENCE) / 2)) * stdev(logs) / sqrt(len(logs))
    return Interval(value=exp(centre), low=exp(centre - reach), high=exp(centre + reach), units=len(logs), reason=reason)
