"""Two cases compared: contrasts of their independent units, and what the units do not include.

Shared with the reports, as intervals.py is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, inf, isnan, log, log1p, nan, sqrt
from statistics import fmean, median

from .intervals import (
    CONFIDENCE,
    Interval,
    Samples,
    bounds_of,
    centre_of,
    dependence,
    log_ratios,
    ranks_reach,
    t_quantile,
    units_of,
    variance,
)

SINGLE_LEVEL = 0.98
"""Where a single draw of an effect counts, such as one process of each side.

Draws may be far from normal, and no mean makes them more so: equal exponential ones are further
apart than 96.5 % of normal ones in 5.7 % of cases.
"""
MANY = 1e6  # degrees of freedom of what is taken to be known
LEAST_DEGREES = 1e-3  # variances that differ so much say nothing of another one
FEWEST_VARIANCES = 3  # from which others are foreseen: how much two differ says too little
MOST_PRIOR_DEGREES = 6.0
"""The most that other pairs count: the processes of a run are the same few for all of them.

If a process slows a backend down at every length alike, six lengths show that once, not six times.
"""
PRIOR_LEVEL = 0.9
"""A pair that varies more than this share of pairs of the others' kind is none of their kind."""
MOST_LOG = 700.0  # its exponential is still finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How much equal cases differ from process to process, or from run to run.

    `sd`: standard deviation of the logarithms; `degrees`: of freedom, with which it was estimated.
    """

    sd: float
    degrees: float

    @property
    def ratio(self) -> float:
        """Two equal cases differ by less in 95 % of draws: 0.12 means by a factor of up to 1.12."""
        reach = t_quantile(self.degrees, (1 + SINGLE_LEVEL) / 2) * sqrt(2) * self.sd
        return expm1(min(reach, MOST_LOG))


def spread(groups: Sequence[Sequence[float]]) -> Spread | None:
    """Pooled over groups of logarithms of what should be equal; None without two in a group."""
    several = [group for group in groups if len(group) > 1]
    degrees = sum(len(group) - 1 for group in several)
    if not degrees:
        return None
    squares = sum(variance(group) * (len(group) - 1) for group in several)
    return Spread(sd=sqrt(squares / degrees), degrees=degrees)


def assumed_spread(ratio: float, degrees: float = MANY) -> Spread:
    """The spread with this `ratio`; unless `degrees` are given, it is taken to be known."""
    sd = log1p(ratio) / sqrt(2) / t_quantile(degrees, (1 + SINGLE_LEVEL) / 2)
    return Spread(sd=sd, degrees=degrees)


def foreseen_spread(variances: Sequence[tuple[float, float]]) -> Spread | None:
    """What the variances of some pairs, each with its degrees of freedom, say of another one.

    The true variances are taken to follow a scaled inverse chi-square distribution, fitted by the
    moments of their logarithms (Smyth 2004, Statistical Applications in Genetics and Molecular
    Biology 3(1), 3): the more the pairs differ, the fewer degrees of freedom they are worth. None
    with too few of them.
    """
    known = [(square, degrees) for square, degrees in variances if square > 0 and degrees > 0]
    if len(known) < FEWEST_VARIANCES:
        return None
    from scipy.optimize import brentq
    from scipy.special import digamma, polygamma

    def log_bias(degrees: float) -> float:
        """Of the logarithm of a variance with so many degrees of freedom."""
        return float(digamma(degrees / 2)) - log(degrees / 2)

    logs = [log(square) - log_bias(degrees) for square, degrees in known]
    sampling = fmean(float(polygamma(1, degrees / 2)) for _, degrees in known)
    excess = variance(logs) - sampling  # by how much the true variances differ

    def unexplained(degrees: float) -> float:
        return float(polygamma(1, degrees / 2)) - excess

    most_differ, all_alike = unexplained(LEAST_DEGREES) < 0, unexplained(MANY) > 0
    degrees = LEAST_DEGREES if most_differ else MANY if all_alike else None
    degrees = degrees or brentq(unexplained, LEAST_DEGREES, MANY)
    sd = exp((fmean(logs) + log_bias(degrees)) / 2)
    return Spread(sd=sd, degrees=min(degrees, MOST_PRIOR_DEGREES))


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A quantity of two cases, compared on the log scale: logarithms of the independent units.

    Paired: `numerator` has the log-ratios and `denominator` is empty. Unpaired: the units of each
    side. `reason` as in Interval, of one process only. `effects`: what the units do not include;
    either side draws it on its own. `prior`: how much the units of other pairs vary, which is
    evidence of how much those of this one do. `single`: by how much single processes differ; of
    several processes, what a comparison of one of each side would have for its units.
    """

    numerator: tuple[float, ...]
    denominator: tuple[float, ...] = ()
    reason: str = ""
    effects: tuple[Spread, ...] = ()
    prior: Spread | None = None
    single: Spread | None = None

    @property
    def log_ratio(self) -> float:
        return self.centre(self.numerator) - self.centre(self.denominator)

    def interval(self) -> Interval:
        """As ratio_interval if paired; else Welch's t (1947).

        Its sides may differ in spread and number; their distributions are taken to have one shape.
        With a `prior`, and too few processes for ranks: the moderated t of Smyth (2004).
        """
        units = len(self.numerator) + len(self.denominator)
        centre = self.log_ratio
        errors = self._errors
        moderated = self._holds_prior and not ranks_reach(units, CONFIDENCE)
        by_units = not (self.denominator or self.effects or self.reason or moderated)
        level = SINGLE_LEVEL if self.effects else CONFIDENCE
        if by_units and errors:
            low, high = bounds_of(self.numerator, level, of_processes=True)
        else:
            reaches = [t_quantile(degrees, (1 + level) / 2) * error for error, degrees in errors]
            reach = min(reaches, default=nan)
            low, high = min(centre, self._mean - reach), max(centre, self._mean + reach)
            low, high = (nan, nan) if isnan(reach) else (low, high)
        return Interval(
            value=exp(centre),
            low=exp(low),
            high=exp(high) if not high > MOST_LOG else inf,
            units=units,
            reason=self.reason,
        )

    @property
    def process(self) -> Spread | None:
        """How far the ratio of one process may be off, by what the units and the effects show; None
        if a side has a single unit.
        """
        sides = [side for side in (self.numerator, self.denominator) if side]
        processes = 1 if self.reason else min(map(len, sides))
        errors = self._errors[:1]
        return next((Spread(sd=sd * sqrt(processes), degrees=df) for sd, df in errors), None)

    def p_beyond(self, margin_ratio: float) -> float:
        """The p-value of a ratio beyond the margin 1 / (1 + margin) .. 1 + margin; may be NaN.

        The probability of a ratio this far outside, or farther, if the truth is at the margin's
        edge: twice the one-sided t test, for corrections that no rank of a few processes survives.
        """
        from scipy.special import stdtr

        beyond = abs(self._mean) - log1p(margin_ratio)
        found = [
            min(1.0, 2 * float(stdtr(degrees, -beyond / error)))
            if error > 0
            else float(beyond <= 0)
            for error, degrees in self._errors
        ]
        return min(found, default=nan)

    def centre(self, side: Sequence[float]) -> float:
        """The value of a side, as in latency_interval; 0 without units."""
        return centre_of(side, of_processes=not self.reason) if side else 0.0

    @property
    def _mean(self) -> float:
        return fmean(self.numerator) - (fmean(self.denominator) if self.denominator else 0.0)

    @cached_property
    def _errors(self) -> list[tuple[float, float]]:
        """Standard errors with their degrees of freedom, each of which gives an interval that
        holds; none if a side has a single unit.

        The second one is that of `single`. Where few starts show how much runs differ, an error
        with less of other noise in it has fewer degrees of freedom (Welch and Satterthwaite), and
        would be told with a wider interval: several processes would decide less than one. But an
        interval that holds with more noise holds with less of it too (Anderson 1955).
        """
        sides = [side for side in (self.numerator, self.denominator) if side]
        if min(map(len, sides)) < 2:
            return []
        widen = dependence if self.reason else lambda side: 1.0
        units = [
            (self._variance(side) / len(side) * widen(side), self._degrees(side)) for side in sides
        ]
        effects = [(2 * effect.sd**2, effect.degrees) for effect in self.effects]
        errors = [_combined([*units, *effects])]
        if self.single is not None and sum(share for share, _ in units) < 2 * self.single.sd**2:
            errors.append(_combined([(2 * self.single.sd**2, self.single.degrees), *effects]))
        return errors

    @cached_property
    def _holds_prior(self) -> bool:
        """Whether the units may vary as those of the other pairs do: an F test. One noisy backend
        among steady ones has its own variance.
        """
        if self.prior is None or len(self.numerator) < 2:
            return False
        from scipy.special import fdtri

        most_ratio = fdtri(len(self.numerator) - 1.0, self.prior.degrees, PRIOR_LEVEL)
        return variance(self.numerator) <= float(most_ratio) * self.prior.sd**2

    def _degrees(self, side: Sequence[float]) -> float:
        return len(side) - 1.0 + (self.prior.degrees if self.prior and self._holds_prior else 0.0)

    def _variance(self, side: Sequence[float]) -> float:
        """Of a unit, between what this side and what other pairs show."""
        own = variance(side)
        if self.prior is None or not self._holds_prior:
            return own
        squares = own * (len(side) - 1) + self.prior.sd**2 * self.prior.degrees
        return squares / self._degrees(side)


def _combined(shares: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The standard error and its degrees of freedom, of independent variances with theirs."""
    total = sum(share for share, _ in shares)
    doubt = sum(share**2 / degrees for share, degrees in shares)
    return sqrt(total), total**2 / doubt if doubt > 0 else sum(degrees for _, degrees in shares)


def paired_contrast(numerator: Samples, denominator: Samples) -> Contrast:
    """Two cases measured in the same blocks, as in ratio_interval.

    Raises ValueError if they have no block in common.
    """
    logs, reason = units_of(log_ratios(numerator, denominator))
    return Contrast(numerator=tuple(logs), reason=reason)


def unpaired_contrast(numerator: Samples, denominator: Samples) -> Contrast:
    """Two cases measured at different times, by the medians of their processes.

    Raises ValueError if one has no sample.
    """
    sides = [
        units_of([[log(median(block)) for block in process if block] for process in side])
        for side in (numerator, denominator)
    ]
    (above, above_reason), (below, below_reason) = sides
    if not above or not below:
        raise ValueError("no samples; compare cases that were measured")
    return Contrast(
        numerator=tuple(above), denominator=tuple(below), reason=above_reason or below_reason
    )


def pooled(contrasts: Sequence[Contrast]) -> Contrast | None:
    """The geometric mean, unit by unit: what the cases of a process share counts once.

    None if the contrasts differ in their numbers of units, or the units are blocks of one process.
    """
    shapes = {(len(one.numerator), len(one.denominator)) for one in contrasts}
    if len(shapes) != 1 or any(one.reason for one in contrasts):
        return None
    sides = [[one.numerator for one in contrasts], [one.denominator for one in contrasts]]
    above, below = (tuple(map(fmean, zip(*side, strict=True))) for side in sides)
    return Contrast(numerator=above, denominator=below, effects=contrasts[0].effects)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for several claims (Holm 1979).

    At level x, the probability that any of the claims is wrong is at most x.
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted, highest = [nan] * len(p_values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted
