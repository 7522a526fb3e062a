"""Intervals and tests for latencies: the one module that the stopping rule and the reports share,
so that they never disagree.

Samples come as `block_ms`, nested [process][block][call], milliseconds. Calls within a block share
drift, so a block counts once, by its median; blocks within a process share its layout, so where
there are several processes a process counts once, by the median of its blocks: one disturbed block
is no reason to doubt the other five. Intervals are Student t on logarithms: latencies are positive
and skewed, and ratios are what is compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, exp, inf, log, log1p, nan, sqrt

# mean and stdev go by way of fractions: 3 times as long for the same digits
from statistics import (
    fmean,
    median,
)

import numpy as np

Samples = Sequence[Sequence[Sequence[float]]]
CONFIDENCE = 0.965
"""Of every interval, so that it covers the truth in 95 % of runs: measuring stops at the first look
that is precise enough, which favours samples that agree by luck, and costs 1 to 2 %. In 20 000
simulated runs intervals of plain 95 % covered 92.8 to 94.8 %."""
ALIKE = 0.3  # lag-1 correlation beyond which neighbouring blocks do not count as independent
# units that must remain when neighbours are merged; two have an interval that is useless (t = 12.7)
FEWEST_MERGED = 3
WINDOW_CALLS = 20
FEWEST_WINDOW_CALLS = 5
STEADY_RATIO = 0.01
NORMAL_95 = 1.96
MOST_LOG = 700.0  # whose exponential is still a number
MAD_TO_SD = 1.4826  # median absolute deviation to standard deviation, for normal noise
MEDIAN_TO_MEAN = 1.2533  # standard error of a median over that of a mean: sqrt(pi / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with the interval that covers the truth in 95 % of runs; NaN bounds where it cannot
    be had, and then `reason` says why.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Whether a ratio is as good as 1. `p_value` is that of the test; `low` and `high` bound the
    ratio with 90 %, as the test does.
    """

    equivalent: bool
    p_value: float
    low: float
    high: float
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outliers:
    """How many values lie beyond Tukey's fences: 1.5 (mild) and 3 (severe) interquartile ranges
    outside the quartiles.
    """

    severe_low: int
    mild_low: int
    mild_high: int
    severe_high: int


# ---- intervals -----------------------------------------------------------------------------------


def latency_interval(block_ms: Samples) -> Interval:
    """The typical latency in ms: geometric mean of the units' medians, unit = process, or block
    where there is one process.
    """
    return _interval(
        *_units([[log(median(block)) for block in process if block] for process in block_ms])
    )


def ratio_interval(numerator: Samples, denominator: Samples) -> Interval:
    """Latency ratio of two members that were measured in the same blocks, paired block by block
    (log-ratios).

    Raises ValueError where the two have no block in common.
    """
    return _interval(*_units(_log_ratios(numerator, denominator)))


def mean_interval(values: Sequence[float], unit: str = "reading") -> Interval:
    """The mean of independent readings of a quantity that may be 0, such as a share of time:
    Student t on the values themselves.
    """
    count = len(values)
    if count < FEWEST_MERGED:
        reason = f"{count} {unit}{'' if count == 1 else 's'}: no interval"
        return Interval(
            value=fmean(values) if values else nan, low=nan, high=nan, units=count, reason=reason
        )
    reach = _t_quantile(count - 1, (1 + CONFIDENCE) / 2) * sqrt(_variance(values)) / sqrt(count)
    return Interval(
        value=fmean(values), low=fmean(values) - reach, high=fmean(values) + reach, units=count
    )


def _log_ratios(numerator: Samples, denominator: Samples) -> list[list[float]]:
    pairs = [
        [log(median(a) / median(b)) for a, b in zip(p, q, strict=False) if a and b]
        for p, q in zip(numerator, denominator, strict=False)
    ]
    if not any(pairs):
        raise ValueError("no block in common; compare members of one session")
    return pairs


def _units(processes: list[list[float]]) -> tuple[list[float], str]:
    """The independent units: one per process, or the blocks of a single process, neighbours merged
    where they are alike.
    """
    filled = [blocks for blocks in processes if blocks]
    if len(filled) > 1:
        return [median(blocks) for blocks in filled], ""
    blocks, reason = (filled[0] if filled else []), "one process: run-to-run variation not included"
    if len(blocks) // 2 >= FEWEST_MERGED and lag1_correlation(blocks) > ALIKE:
        merged = [fmean(blocks[i : i + 2]) for i in range(len(blocks) % 2, len(blocks), 2)]
        return merged, f"{reason}; neighbouring blocks are alike and count as one"
    return blocks, reason


def _interval(logs: list[float], reason: str) -> Interval:
    if not logs:
        return Interval(value=nan, low=nan, high=nan, units=0, reason="no samples")
    centre = fmean(logs)
    if len(logs) == 1:
        return Interval(
            value=exp(centre), low=nan, high=nan, units=1, reason="one block only: no interval"
        )
    reach = (
        _t_quantile(len(logs) - 1, (1 + CONFIDENCE) / 2) * sqrt(_variance(logs)) / sqrt(len(logs))
    )
    return Interval(
        value=exp(centre),
        low=exp(centre - reach),
        high=exp(centre + reach),
        units=len(logs),
        reason=reason,
    )


def _t_quantile(degrees: float, probability: float) -> float:
    # Imported here: scipy costs 0.2 s, and most commands draw no interval.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


# ---- contrasts -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A quantity of two members, compared on the log scale: logarithms of the independent units.

    Paired: `numerator` holds log-ratios and `denominator` is empty. Unpaired: the units of either
    side. `reason` as in Interval.
    """

    numerator: tuple[float, ...]
    denominator: tuple[float, ...] = ()
    reason: str = ""

    @property
    def log_ratio(self) -> float:
        return fmean(self.numerator) - (fmean(self.denominator) if self.denominator else 0.0)

    def interval(self) -> Interval:
        """Student t; unpaired that of Welch (1947), whose two sides may differ in spread and
        number.
        """
        error, degrees = self._error()
        centre, reach = (
            self.log_ratio,
            _t_quantile(degrees, (1 + CONFIDENCE) / 2) * error if degrees > 0 else nan,
        )
        high = exp(centre + reach) if not centre + reach > MOST_LOG else inf
        units = len(self.numerator) + len(self.denominator)
        return Interval(
            value=exp(centre), low=exp(centre - reach), high=high, units=units, reason=self.reason
        )

    def p_beyond(self, margin_ratio: float) -> float:
        """How likely it is to see a ratio this far outside 1 / (1 + margin) .. 1 + margin, or
        farther, if the truth is at its edge.

        Twice the one-sided t test, so the interval lies beyond the margin if and only if this is
        below 1 - CONFIDENCE. May be NaN.
        """
        from scipy.special import stdtr

        error, degrees = self._error()
        beyond = abs(self.log_ratio) - log1p(margin_ratio)
        if not degrees > 0:
            return nan
        return (
            min(1.0, 2 * float(stdtr(degrees, -beyond / error)))
            if error > 0
            else float(beyond <= 0)
        )

    def _error(self) -> tuple[float, float]:
        """Standard error and degrees of freedom; 0 degrees where some side has one unit only."""
        sides = [side for side in (self.numerator, self.denominator) if side]
        if min(map(len, sides)) < 2:
            return nan, 0.0
        shares = [_variance(side) / len(side) for side in sides]
        spread = sum(share**2 / (len(side) - 1) for share, side in zip(shares, sides, strict=True))
        return sqrt(sum(shares)), sum(shares) ** 2 / spread if spread > 0 else float(
            sum(map(len, sides)) - len(sides)
        )


def _variance(values: Sequence[float]) -> float:
    centre = fmean(values)
    return sum((value - centre) ** 2 for value in values) / (len(values) - 1)


def paired_contrast(numerator: Samples, denominator: Samples) -> Contrast:
    """Of two members of the same blocks, as ratio_interval. Raises ValueError where the two have no
    block in common.
    """
    logs, reason = _units(_log_ratios(numerator, denominator))
    return Contrast(numerator=tuple(logs), reason=reason)


def unpaired_contrast(numerator: Samples, denominator: Samples) -> Contrast:
    """Of members that were measured at different times: medians of processes against medians of
    processes.

    Raises ValueError where either has no sample.
    """
    sides = [
        _units([[log(median(block)) for block in process if block] for process in side])
        for side in (numerator, denominator)
    ]
    (above, above_reason), (below, below_reason) = sides
    if not above or not below:
        raise ValueError("no samples; compare members that were measured")
    return Contrast(
        numerator=tuple(above), denominator=tuple(below), reason=above_reason or below_reason
    )


def pooled(contrasts: Sequence[Contrast]) -> Contrast | None:
    """Their geometric mean, unit by unit, so that what all cases of one process share counts once.

    None where the contrasts differ in their numbers of units, or the units are blocks of one
    process.
    """
    shapes = {(len(one.numerator), len(one.denominator)) for one in contrasts}
    if len(shapes) != 1 or any(one.reason for one in contrasts):
        return None
    sides = [[one.numerator for one in contrasts], [one.denominator for one in contrasts]]
    above, below = (tuple(map(fmean, zip(*side, strict=True))) for side in sides)
    return Contrast(numerator=above, denominator=below)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values, adjusted so that a claim at level x is wrong anywhere among them with
    probability x at most (Holm 1979).
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted, highest = [nan] * len(p_values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


# ---- tests ---------------------------------------------------------------------------------------


def equivalence(
    numerator: Samples, denominator: Samples, margin_ratio: float = 0.05
) -> Equivalence:
    """Whether two members of the same blocks cost the same within `margin_ratio`: two one-sided t
    tests at 5 % on the paired log-ratios.

    Equivalent if and only if the 90 % interval of the ratio lies within 1 / (1 + margin) .. 1 +
    margin (Schuirmann 1987). A difference that is merely not significant proves nothing. Raises
    ValueError where the two have no block in common, or margin_ratio <= 0.
    """
    if not margin_ratio > 0:
        raise ValueError(
            f"margin_ratio is {margin_ratio}; wanted more than 0, such as 0.05 for 5 %"
        )
    logs, _ = _units(_log_ratios(numerator, denominator))
    if len(logs) < 2:
        return Equivalence(equivalent=False, p_value=nan, low=nan, high=nan, units=len(logs))
    from scipy.special import stdtr

    centre, error, degrees, margin = (
        fmean(logs),
        sqrt(_variance(logs)) / sqrt(len(logs)),
        len(logs) - 1,
        log(1 + margin_ratio),
    )
    # Without any spread the statistic is infinite, on the side on which the centre lies.
    scores = [
        distance / error if error > 0 else copysign(float("inf"), distance)
        for distance in (centre + margin, margin - centre)
    ]
    p_value = max(float(stdtr(degrees, -score)) for score in scores)
    reach = _t_quantile(degrees, 0.95) * error
    low, high = exp(centre - reach), exp(centre + reach)
    return Equivalence(
        equivalent=p_value < 0.05, p_value=p_value, low=low, high=high, units=len(logs)
    )


def lag1_correlation(values: Sequence[float]) -> float:
    """How alike neighbours are: 0 for independent values, towards 1 for slow drift; NaN for fewer
    than 3 values or no spread.
    """
    x = np.asarray(values, dtype=float)
    x = x - x.mean() if len(x) >= 3 else x
    power = float(x @ x)
    return float(x[1:] @ x[:-1]) / power if len(x) >= 3 and power > 0 else nan


def outliers(values: Sequence[float]) -> Outliers:
    """Counts beyond Tukey's fences (1977), as criterion.rs classifies them. They are kept: a slow
    call was slow.
    """
    x = np.asarray(values, dtype=float)
    if not len(x):
        return Outliers(severe_low=0, mild_low=0, mild_high=0, severe_high=0)
    first, third = np.percentile(x, [25, 75])
    beyond_low, beyond_high = (
        (first - x) / max(third - first, 1e-300),
        (x - third) / max(third - first, 1e-300),
    )
    return Outliers(
        severe_low=int((beyond_low > 3).sum()),
        mild_low=int(((beyond_low > 1.5) & (beyond_low <= 3)).sum()),
        mild_high=int(((beyond_high > 1.5) & (beyond_high <= 3)).sum()),
        severe_high=int((beyond_high > 3).sum()),
    )


def stationary(readings: Sequence[float]) -> bool | None:
    """Whether a warm-up has come to rest, by its last two windows of up to 20 calls; None where
    there are too few calls to tell.

    Both must hold: the windows' medians differ by at most 1 % or by what their noise explains (two
    standard errors), and the calls show no trend (Mann 1945: the slope of Theil and Sen then has an
    interval that contains 0).
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
    noise = 2 * MEDIAN_TO_MEAN * spread * sqrt(2 / window)
    return shift <= max(STEADY_RATIO, noise) and (
        shift <= STEADY_RATIO or abs(trend(logs)) <= NORMAL_95
    )


def trend(values: Sequence[float] | np.ndarray) -> float:
    """Mann-Kendall statistic, standard normal where there is no trend: how many pairs rise more
    than fall, in standard deviations.
    """
    x = np.asarray(values, dtype=float)
    n = len(x)
    rises = float(np.sign(x[None, :] - x[:, None])[np.triu_indices(n, 1)].sum())
    return rises / sqrt(n * (n - 1) * (2 * n + 5) / 18) if n > 1 else 0.0
