"""How time grows with N: a fit of a + b N + c N^2, its local exponent, and where N^2 takes over.

A straight line through logarithms does not work: 20 us + 20 ns N + 2 ps N^2 gives it a slope of 0.6
over N = 128..8192. The formula is fitted to relative errors, with coefficients >= 0. Its terms are
chosen by AICc (Hurvich and Tsai 1989) among those that describe the times, if any do. The intervals
keep all three terms: with four or five lengths the choice is often wrong, and an interval that
depends on it misses the truth.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from math import exp, inf, isfinite, log, nan

import numpy as np
from numpy.typing import NDArray

from ..harness.stats.intervals import CONFIDENCE, WIDENED_LEVEL, Interval
from .data.processor_time import disturbed
from .data.row_groups import Group, Row, axis_title, backends, groups
from .formatting import number_text, whole_text
from .judging.pair import Ratio, log_bounds, time_ratio

Numbers = NDArray[np.float64]
FEWEST_LENGTHS = 5  # with four, AICc can choose no formula of two terms
FURTHEST = 4  # times the longest measured N: beyond it the formula is not used
EXPONENT_MARGIN = 0.1  # an exponent of 1.1 doubles 7 % more than linear does
DRAWS = 2000  # bounds of exponents with six blocks per length then differ by 0.03 between seeds
SEED = 20261121  # the same run gives the same page
_SUBSETS = tuple(subset for count in (1, 2, 3) for subset in combinations(range(3), count))
OFF_RATIO = 1.15  # largest difference of formula and measurement, if beyond the interval
_NO_RESIDUAL = 1e-6  # relative; fits closer than this are equally good
_RIDGE = 1e-14  # of columns scaled to 1: keeps a solution where columns coincide


NOTHING = Interval(value=nan, low=nan, high=nan, units=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How the time of one backend grows with N on one problem.

    Coefficients of unused terms are 0; `reason` says why there is no fit. Per length: `exponents`
    of the formula, and `slopes` measured between the lengths before and after it (None at both
    ends). `worst`: the length at which formula and measurement differ most, and the ratio.
    `describes` is false if they differ by more than 1.15 and more than the latency's interval:
    caches, kernels and clocks change with N, and the formula has no term for that. `disturbed`:
    other work competed for the cores in most blocks of some length; it slows long calls down more
    than those that end within a scheduler's slice, so time seems to grow faster than it does.
    """

    backend: str
    lengths: tuple[int, ...]
    time_ms: tuple[float, ...]
    slopes: tuple[Interval | None, ...]
    constant_ms: Interval = NOTHING
    per_token_ms: Interval = NOTHING
    per_pair_ms: Interval = NOTHING
    exponents: tuple[Interval, ...] = ()
    crossover: Interval | None = None
    worst: tuple[int, float] = (0, nan)
    describes: bool = False
    disturbed: bool = False
    reason: str = ""
    draws: Numbers = field(repr=False, compare=False, default_factory=lambda: np.empty((0, 3)))

    @property
    def overtaking(self) -> Interval | None:
        """`crossover`, and 0 where no cost of N shows beside N²; None if N² does not show."""
        if not self.per_pair_ms.value > 0:
            return None
        ratio = self.per_token_ms.value / self.per_pair_ms.value
        return self.crossover or _intervals([ratio], _crossing(self.draws)[None], "")[0]

    @property
    def chosen(self) -> Numbers:
        """The coefficients."""
        found = (self.constant_ms, self.per_token_ms, self.per_pair_ms)
        return np.array([one.value for one in found])


# ---- fits of rows --------------------------------------------------------------------------------


def growths(rows: Sequence[Row], over: str = "seq_len") -> Iterator[tuple[Group, list[Growth]]]:
    """Every problem with a backend timed at two or more lengths; lazy, as fits take time.

    `over`: the axis that grows, N if not given. What is said of N and lengths then holds for it.
    """
    for group in groups(rows, over):
        fits = [growth(group.rows, backend, over) for backend in backends(group.rows)]
        if several := [one for one in fits if len(one.lengths) > 1]:
            yield group, several


def growth(rows: Sequence[Row], backend: str, over: str = "seq_len") -> Growth:
    """The fit of one backend among the rows of one problem over N, or over another axis."""
    of_backend = (row for row in rows if row["backend"] == backend)
    timed = {row[over]: row for row in of_backend if row.get("latency_ms") is not None}
    mine = [timed[n] for n in sorted(timed)]
    lengths, times = tuple(row[over] for row in mine), tuple(row["latency_ms"] for row in mine)
    slopes = tuple(
        slope(mine[i - 1], mine[i + 1], over) if 0 < i < len(mine) - 1 else None
        for i in range(len(mine))
    )
    if len(mine) < FEWEST_LENGTHS:
        are = "is" if len(mine) == 1 else "are"
        reason = f"{FEWEST_LENGTHS} timed lengths are needed, and there {are} {len(mine)}"
        return Growth(backend=backend, lengths=lengths, time_ms=times, slopes=slopes, reason=reason)
    drawn, note = _drawn(mine, over)
    coefficients, residual = _solutions(lengths, np.concatenate([np.array([times]), drawn]))
    draws = _best(coefficients, residual)[1:]
    # AICc does not know how exact the times are, so a formula that misses them may have the best.
    misses = np.isinf(residual[:, 0]) | [
        not _describes(one, mine, over) for one in coefficients[:, 0]
    ]
    scores = _aicc(residual[:, 0], len(mine))
    chosen = coefficients[np.lexsort((residual[:, 0], scores, misses))[0], 0]
    off = {row[over]: _off(chosen, row, over) for row in mine}
    worst = max(off, key=lambda n: off[n])
    exponents = _exponents(np.concatenate([chosen[None], draws]), lengths)  # [length, 1 + draw]
    bounds = _intervals(
        [*chosen, *exponents[:, 0]], np.concatenate([draws.T, exponents[:, 1:]]), note
    )
    crosses = chosen[1] > 0 and chosen[2] > 0
    ratio = chosen[1] / chosen[2] if crosses else nan
    return Growth(
        backend=backend,
        lengths=lengths,
        time_ms=times,
        constant_ms=bounds[0],
        per_token_ms=bounds[1],
        per_pair_ms=bounds[2],
        exponents=tuple(bounds[3:]),
        slopes=slopes,
        crossover=_intervals([ratio], _crossing(draws)[None], note)[0] if crosses else None,
        worst=(worst, off[worst]),
        describes=_describes(chosen, mine, over),
        disturbed=disturbed(*mine),
        draws=draws,
    )


def predict(found: Growth, n: int) -> Interval:
    """The time at another N; NaN with a reason without a fit, or beyond 4 times the longest N."""
    longest = max(found.lengths, default=0)
    reason = found.reason or (
        f"beyond {FURTHEST} times the longest measured N" if n > FURTHEST * longest else ""
    )
    if reason:
        return replace(NOTHING, reason=reason)
    return _intervals(
        [_time(found.chosen, n)], (found.draws @ np.array([1.0, n, float(n) * n]))[None], ""
    )[0]


def growths_of(
    rows: Sequence[Row], backend: str, over: str = "seq_len"
) -> list[tuple[Group, Growth]]:
    """The fits of one backend, on every problem that has one."""
    mine = groups([row for row in rows if row["backend"] == backend], over)
    found = [(group, growth(group.rows, backend, over)) for group in mine]
    return [(group, one) for group, one in found if not one.reason]


def interval_text(found: Interval) -> str:
    """`1.93 (1.90 to 1.97)`; an infinite bound is `no end`.

    Without an empty interval: `2 (exactly)` where every draw has the same terms, and `2.00 (within
    0.004)` where the digits would not differ.
    """
    if not isfinite(found.low):
        return number_text(found.value)
    if isfinite(found.high) and number_text(found.low) == number_text(found.high):
        reach = max(found.high - found.value, found.value - found.low)
        if reach <= _NO_RESIDUAL * abs(found.value):
            return f"{whole_text(float(f'{found.value:.6g}'))} (exactly)"
        return f"{number_text(found.value)} (within {number_text(reach)})"
    high = number_text(found.high) if isfinite(found.high) else "no end"
    return f"{number_text(found.value)} ({number_text(found.low)} to {high})"


# ---- the fit -------------------------------------------------------------------------------------


def fit(lengths: Sequence[int], times_ms: Numbers, *, choose: bool) -> Numbers:
    """Coefficients [series, 3] >= 0 of times [series, length], by least relative squares.

    All seven sets of terms are solved without the bound, and the best solution within it is taken:
    the optimum is the unbounded fit of its own terms. `choose`: by AICc, else by residuals.
    """
    coefficients, residual = _solutions(lengths, times_ms)
    return _best(coefficients, _aicc(residual, len(lengths)) if choose else residual)


def _solutions(lengths: Sequence[int], times_ms: Numbers) -> tuple[Numbers, Numbers]:
    """Coefficients [set, series, 3] and mean squared residuals [set, series] per set of terms.

    Residuals are infinite if a coefficient is negative.
    """
    n = np.asarray(lengths, dtype=float)
    powers = np.stack([np.ones_like(n), n, n * n], axis=1)  # [length, 3]
    scale = powers.max(axis=0)
    weights = 1 / times_ms  # relative errors: every time becomes 1
    gram = (weights**2) @ _products(powers / scale)  # [series, 9]
    aim = weights @ (powers / scale)  # [series, 3]
    gram = gram.reshape(-1, 3, 3)
    size = np.sqrt(np.einsum("spp->sp", gram))
    gram, aim = gram / size[:, :, None] / size[:, None, :], aim / size
    coefficients = np.zeros((len(_SUBSETS), len(times_ms), 3))
    for place, subset in enumerate(_SUBSETS):
        terms = list(subset)
        coefficients[place][:, terms] = _solved(gram[:, terms][:, :, terms], aim[:, terms])
    # The fit is orthogonal to its residual.
    residual = np.maximum(len(n) - (coefficients * aim).sum(axis=2), 0) / len(n)
    return coefficients / size / scale, np.where((coefficients >= 0).all(axis=2), residual, inf)


def _products(columns: Numbers) -> Numbers:
    return np.asarray((columns[:, :, None] * columns[:, None, :]).reshape(len(columns), -1))


def _best(coefficients: Numbers, scores: Numbers) -> Numbers:
    """Of each series the coefficients with the lowest score [set, series]."""
    return np.asarray(coefficients[scores.argmin(axis=0), np.arange(scores.shape[1])])


def _aicc(residual: Numbers, lengths: int) -> Numbers:
    """By mean squared residuals, the sets first; the same shape."""
    # The variance of the errors is estimated too, so it counts as a parameter.
    counts = 1 + np.array([len(subset) for subset in _SUBSETS])
    freedom = lengths - counts - 1
    penalty = np.where(
        freedom > 0, 2 * counts + 2 * counts * (counts + 1) / np.maximum(freedom, 1), inf
    )
    fits = lengths * np.log(np.maximum(residual, _NO_RESIDUAL**2))
    return np.asarray((fits.T + penalty).T)


def _solved(gram: Numbers, aim: Numbers) -> Numbers:
    """Solutions [series, unknown] of systems of one, two or three unknowns with unit columns."""
    count = gram.shape[-1]
    if count == 1:
        return np.asarray(aim)
    if count == 2:  # numpy's solver takes ten times as long
        cosine, (first, second) = gram[:, 0, 1], aim.T
        unscaled = np.stack([first - cosine * second, second - cosine * first], axis=1)
        return np.asarray(unscaled / (1 - cosine**2 + _RIDGE)[:, None])
    return np.asarray(np.linalg.solve(gram + _RIDGE * np.eye(count), aim[:, :, None])[:, :, 0])


def _drawn(rows: Sequence[Row], over: str) -> tuple[Numbers, str]:
    """Simulated times [draw, length]: each length's log moved by a t that reproduces its interval.

    The interval of a single process includes that processes differ. Without an interval at some
    length there are no draws, and a reason. A bootstrap of 3 to 8 units would give intervals that
    cover the truth in 85 to 93 %, not in 95.
    """
    down, up = np.array([log_bounds(row) for row in rows]).T
    if not np.isfinite(down + up).all():
        n = rows[int(np.isnan(down + up).argmax())][over]
        return np.empty((0, len(rows))), f"no interval of the time at {axis_title(over)} = {n}"
    moves = _moves(tuple(max(1, _units(row) - 1) for row in rows))
    moved = moves * np.where(moves < 0, down, up)
    middle = np.log([row["latency_ms"] for row in rows])
    notes = dict.fromkeys(
        part for row in rows for part in (row.get("latency_note") or "").split("; ") if part
    )
    # With two units a draw may overflow.
    return np.exp(np.clip(middle + moved, middle.mean() - 50, middle.mean() + 50)), "; ".join(notes)


@lru_cache(maxsize=64)  # many problems have the same lengths and units
def _moves(degrees: tuple[int, ...]) -> Numbers:
    """Draws [draw, length] in units of an interval's half width.

    A Latin hypercube: at every length each part of the distribution is drawn equally often, so that
    few draws have its tails (McKay et al. 1979).
    """
    from scipy.special import stdtrit

    parts = np.tile(np.arange(DRAWS), (len(degrees), 1))
    shares = (np.random.default_rng(SEED).permuted(parts, axis=1).T + 0.5) / DRAWS
    freedom = np.array(degrees)
    return np.asarray(stdtrit(freedom, shares) / stdtrit(freedom, (1 + WIDENED_LEVEL) / 2))


def _units(row: Row) -> int:
    """The processes, or the blocks of a single one: they give the t its degrees of freedom."""
    filled = [sum(map(bool, process)) for process in row["block_ms"] if any(process)]
    return len(filled) if len(filled) > 1 else sum(filled)


def _intervals(values: Sequence[float], draws: Numbers, note: str) -> list[Interval]:
    """Percentiles of the draws [value, draw].

    Extended to the value if the choice of terms put it outside.
    """
    count = draws.shape[1]
    if not count:
        return [replace(NOTHING, value=float(value), reason=note) for value in values]
    outside = int((1 - CONFIDENCE) / 2 * count)
    ordered = np.sort(draws, axis=1)
    lows = np.minimum(ordered[:, outside], values)
    highs = np.maximum(ordered[:, -1 - outside], values)
    return [
        Interval(value=float(value), low=float(low), high=float(high), units=count, reason=note)
        for value, low, high in zip(values, lows, highs, strict=True)
    ]


def _describes(coefficients: Numbers, rows: Sequence[Row], over: str) -> bool:
    """Whether no row is off by more than `OFF_RATIO` and more than its interval."""
    return all(
        _off(coefficients, row, over) <= OFF_RATIO or _within(_time(coefficients, row[over]), row)
        for row in rows
    )


def _off(coefficients: Numbers, row: Row, over: str) -> float:
    """The ratio, above 1, of a formula's time and the measured one; infinite for a time of 0."""
    time = _time(coefficients, row[over])
    return exp(abs(log(time / row["latency_ms"]))) if time > 0 else inf


def _within(time_ms: float, row: Row) -> bool:
    low, high = row.get("latency_low_ms"), row.get("latency_high_ms")
    return low is not None and high is not None and low <= time_ms <= high


def _time(coefficients: Numbers, n: int) -> float:
    return float(coefficients @ np.array([1.0, n, float(n) * n]))


def _exponents(coefficients: Numbers, lengths: Sequence[int]) -> Numbers:
    """Exponents [length, series]."""
    n = np.asarray(lengths, dtype=float)[:, None]
    linear, quadratic = coefficients[:, 1] * n, coefficients[:, 2] * n * n
    return np.asarray(
        (linear + 2 * quadratic) / np.maximum(coefficients[:, 0] + linear + quadratic, 1e-300)
    )


def _crossing(draws: Numbers) -> Numbers:
    """b / c of every draw; infinite without N^2."""
    linear, quadratic = draws[:, 1], draws[:, 2]
    return np.asarray(
        np.divide(linear, quadratic, out=np.full(len(draws), inf), where=quadratic > 0)
    )


def slope(before: Row, after: Row, over: str) -> Interval | None:
    """The measured slope of log T over log N between two lengths; NaN bounds without intervals."""
    ratio = time_ratio(after, before)
    return None if ratio is None else power(ratio, after[over] / before[over])


def power(ratio: Ratio, times: float) -> Interval:
    """The exponent x for which a size that grows so many times gives this ratio."""
    low, high = (
        log(bound) / log(times) if bound > 0 and isfinite(bound) else nan
        for bound in (ratio.low, ratio.high)
    )
    return Interval(value=log(ratio.value) / log(times), low=low, high=high, units=2)
