"""Intervals and tests for latencies, shared by the stopping rule and the reports.

Samples are `block_ms`, nested [process][block][call], in ms. Calls of a block share drift, so a
block counts once, by its median. Blocks of a process share its memory layout, so with several
processes a process counts once, by the median of its blocks, which ignores a disturbed block.
Intervals are on logarithms, as ratios are compared. Those over processes are of the median process
and hold whatever the distribution of processes is; those of a single process are Student t.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb, exp, isnan, log, nan, sqrt
from statistics import fmean, median  # mean and stdev use fractions: 3 times slower

import numpy as np

Samples = Sequence[Sequence[Sequence[float]]]
CONFIDENCE = 0.965
"""The level of every interval, so that it covers the truth in 95 % of runs.

Measuring stops at the first look that is precise enough. That favours samples that agree by chance
and costs 1 to 2 %: in 20 000 simulated runs, intervals at 95 % covered 92.8 to 94.8 %.
"""
TWO_KINDS_FROM = 5
"""Processes from which an interval holds if they are of two kinds: 2^-4 of all draws miss one."""
WIDENED_LEVEL = 0.95
"""Of t where something else widens the interval: all of five processes, or blocks that correlate.

Both together cover the truth of normal draws in 96 % of runs.
"""
FEWEST_CORRELATED = 6  # blocks of a process from which their correlation is looked at
MOST_CORRELATION = 0.9
DOUBTED_CORRELATION = 0.1  # added: too little would be worse than too much
NOTED_DEPENDENCE = 4.0  # the interval is then twice as wide
FEWEST_READINGS = 3  # the interval of two is useless (t = 12.7)
WINDOW_CALLS = 20
FEWEST_WINDOW_CALLS = 5
STEADY_RATIO = 0.01
MOST_TREND = 3.3  # standard deviations: 0.1 % of steady warm-ups exceed it
NORMAL_95 = 1.96
MAD_TO_SD = 1.4826  # median absolute deviation to standard deviation, for normal noise
MEDIAN_TO_MEAN = 1.2533  # standard error of a median over that of a mean: sqrt(pi / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value, and the interval that covers the truth in 95 % of runs.

    `reason`: why the bounds are NaN, or what a good interval leaves out (one process only).
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

    def mapped(self, change: Callable[[float], float]) -> "Interval":
        """Of what grows with the value: `change` of the value and of both bounds."""
        value, low, high = map(change, (self.value, self.low, self.high))
        return replace(self, value=value, low=low, high=high)


# ---- intervals -----------------------------------------------------------------------------------


def latency_interval(block_ms: Samples) -> Interval:
    """The typical latency in ms: the median of the medians of the processes.

    Of a single process, the geometric mean of the medians of its blocks.
    """
    return _interval(
        *units_of([[log(median(block)) for block in process if block] for process in block_ms])
    )


def ratio_interval(numerator: Samples, denominator: Samples) -> Interval:
    """The latency ratio of two cases measured in the same blocks, by paired log-ratios.

    Raises ValueError if they have no block in common.
    """
    return _interval(*units_of(log_ratios(numerator, denominator)))


def mean_interval(values: Sequence[float], unit: str = "reading") -> Interval:
    """The mean of independent readings of a quantity that may be 0: Student t on the values."""
    count = len(values)
    if count < FEWEST_READINGS:
        reason = f"{count} {unit}{'' if count == 1 else 's'}: no interval"
        return Interval(
            value=fmean(values) if values else nan, low=nan, high=nan, units=count, reason=reason
        )
    reach = t_quantile(count - 1, (1 + CONFIDENCE) / 2) * sqrt(variance(values)) / sqrt(count)
    return Interval(
        value=fmean(values), low=fmean(values) - reach, high=fmean(values) + reach, units=count
    )


def log_ratios(numerator: Samples, denominator: Samples) -> list[list[float]]:
    pairs = [
        [log(median(a) / median(b)) for a, b in zip(p, q, strict=False) if a and b]
        for p, q in zip(numerator, denominator, strict=False)
    ]
    if not any(pairs):
        raise ValueError("no block in common; compare cases of one run")
    return pairs


def units_of(processes: list[list[float]]) -> tuple[list[float], str]:
    """The units, and a caveat: one per process, or the blocks of a single process."""
    filled = [blocks for blocks in processes if blocks]
    if len(filled) > 1:
        return [median(blocks) for blocks in filled], ""
    blocks, reason = (filled[0] if filled else []), "one process: run-to-run variation not included"
    if dependence(blocks) > NOTED_DEPENDENCE:
        reason += "; neighbouring blocks correlate, so the interval is wider"
    return blocks, reason


def dependence(blocks: Sequence[float]) -> float:
    """By how much the variance of a mean of blocks exceeds what independent blocks would give it.

    By an AR(1) process with the lag-1 correlation of the blocks, which is too small by
    (1 + 4 rho) / n on average (Kendall 1954); 1 for fewer than six blocks.
    """
    return _dependence(tuple(blocks))


@lru_cache(maxsize=4096)  # a side has the same blocks in each of its pairs
def _dependence(blocks: tuple[float, ...]) -> float:
    count = len(blocks)
    lag1 = lag1_correlation(blocks) if count >= FEWEST_CORRELATED else nan
    if isnan(lag1):
        return 1.0
    rho = min(MOST_CORRELATION, (count * lag1 + 1) / (count - 4) + DOUBTED_CORRELATION)
    if rho <= 0:
        return 1.0
    excess = 1 + 2 * sum((1 - step / count) * rho**step for step in range(1, count))
    return excess * (count - 1) / (count - excess)  # the sample variance is too small as well


def _interval(logs: list[float], reason: str) -> Interval:
    if not logs:
        return Interval(value=nan, low=nan, high=nan, units=0, reason="no samples")
    value = exp(centre_of(logs, of_processes=not reason))
    if len(logs) == 1:
        return Interval(
            value=value, low=nan, high=nan, units=1, reason="one block only: no interval"
        )
    low, high = bounds_of(logs, CONFIDENCE, of_processes=not reason)
    if not reason and len(logs) < TWO_KINDS_FROM:
        reason = f"{len(logs)} processes: the interval assumes that they are of one kind"
    return Interval(value=value, low=exp(low), high=exp(high), units=len(logs), reason=reason)


def centre_of(logs: Sequence[float], *, of_processes: bool) -> float:
    return median(logs) if of_processes else fmean(logs)


def bounds_of(logs: Sequence[float], level: float, *, of_processes: bool) -> tuple[float, float]:
    """The interval of the mean of blocks by Student t, or of the median process by ranks.

    The ranks are interpolated (Hettmansperger and Sheather 1986). Processes may be of two kinds,
    and then t over ten of them covers the median in 86 % of runs instead of 96.5. With fewer
    processes than the level needs (six at 96.5 %), the interval spans them all and that of t.
    """
    if of_processes and ranks_reach(len(logs), level):
        return _rank_bounds(logs, level)
    centre, square = fmean(logs), variance(logs) / len(logs)
    if not of_processes:
        square *= dependence(logs)
    if len(logs) >= (TWO_KINDS_FROM if of_processes else FEWEST_CORRELATED):
        level = min(level, WIDENED_LEVEL)
    reach = t_quantile(len(logs) - 1, (1 + level) / 2) * sqrt(square)
    if not of_processes:
        return centre - reach, centre + reach
    return min(centre - reach, *logs), max(centre + reach, *logs)


def ranks_reach(count: int, level: float) -> bool:
    """Whether so many units span their median with this probability, however distributed."""
    return 1 - 2 * tail(count, 0) >= level


def _rank_bounds(logs: Sequence[float], level: float) -> tuple[float, float]:
    ordered, count, rank = sorted(logs), len(logs), 1
    while 1 - 2 * tail(count, rank) >= level:
        rank += 1
    outer, inner = 1 - 2 * tail(count, rank - 1), 1 - 2 * tail(count, rank)
    share = (outer - level) / (outer - inner)
    inward = (count - rank) * share / (rank + (count - 2 * rank) * share)
    return (
        (1 - inward) * ordered[rank - 1] + inward * ordered[rank],
        (1 - inward) * ordered[-rank] + inward * ordered[-rank - 1],
    )


@lru_cache(maxsize=1024)
def tail(count: int, most: int) -> float:
    """The probability of at most `most` heads in `count` tosses of a coin."""
    return sum(comb(count, heads) for heads in range(most + 1)) / 2.0**count


def variance(values: Sequence[float]) -> float:
    centre = fmean(values)
    return sum((value - centre) ** 2 for value in values) / (len(values) - 1)


@lru_cache(maxsize=4096)
def t_quantile(degrees: float, probability: float) -> float:
    # Imported here: scipy costs 0.2 s, and most commands draw no interval.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


# ---- tests ---------------------------------------------------------------------------------------


def lag1_correlation(values: Sequence[float]) -> float:
    """Correlation of neighbours: 0 if independent, towards 1 for slow drift.

    NaN for fewer than 3 values or without spread.
    """
    x = np.asarray(values, dtype=float)
    x = x - x.sum() / len(x) if len(x) >= 3 else x  # as x.mean(), in half the time
    power = float(x @ x)
    return float(x[1:] @ x[:-1]) / power if len(x) >= 3 and power > 0 else nan


def stationary(readings: Sequence[float]) -> bool | None:
    """Whether a warm-up is stationary, by its last two windows of up to 20 calls.

    None for too few calls. Both must hold: the windows' medians differ by at most 1 % or by what
    their noise explains, and the calls show no trend (Mann 1945). Each limit is one that 0.1 to
    0.2 % of steady warm-ups exceed, since one of them flags a case, of which each process has one:
    with six processes less than 2 % of cases are flagged for nothing (tests/bench).
    """
    window = min(WINDOW_CALLS, len(readings) // 2)
    if window < FEWEST_WINDOW_CALLS:
        return None
    logs = np.log(np.asarray(readings[-2 * window :], dtype=float))
    early, late = logs[:window], logs[window:]
    shift = abs(float(np.median(late) - np.median(early)))
    spread = MAD_TO_SD * float(
        np.median(np.abs(np.concatenate([early - np.median(early), late - np.median(late)])))
    )
    # the 99.8 % quantile of the shift over its standard error, fitted to simulated windows of 5 to
    # 20 calls: the fewer there are, the less is known of their spread
    reach = 3.3 + 165 / window**2
    noise = reach * MEDIAN_TO_MEAN * spread * sqrt(2 / window)
    return shift <= max(STEADY_RATIO, noise) and (
        shift <= STEADY_RATIO or abs(trend(logs)) <= MOST_TREND
    )


def trend(values: Sequence[float] | np.ndarray) -> float:
    """Mann-Kendall statistic: rising minus falling pairs, in standard deviations.

    Standard normal if there is no trend.
    """
    x = np.asarray(values, dtype=float)
    n = len(x)
    rises = float(np.sign(x[None, :] - x[:, None])[np.triu_indices(n, 1)].sum())
    return rises / sqrt(n * (n - 1) * (2 * n + 5) / 18) if n > 1 else 0.0


def median_bounds(values: Sequence[float]) -> tuple[float, float]:
    """Of the median, by ranks: whatever the distribution, and with values that may be infinite.

    The innermost ranks that reach the level; NaN if even the smallest and largest value do not, as
    of fewer than six.
    """
    ordered, count = sorted(values), len(values)
    reach = [rank for rank in range((count + 1) // 2) if 1 - 2 * tail(count, rank) >= CONFIDENCE]
    return (ordered[reach[-1]], ordered[-1 - reach[-1]]) if reach else (nan, nan)
