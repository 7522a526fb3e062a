"""How time grows with N: local exponents, and a formula a + b N + c N^2 for other lengths.

The exponent at a length is measured between its neighbours and takes no formula: fitted to N^1.5
over five doublings, a + b N + c N^2 has an exponent of 1.67 at the longest. The formula predicts
times and says where N^2 takes over; its terms may come out either way, since terms that may not be
negative put every sample of a power such as N^2.05 on the bound.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import exp, hypot, inf, isfinite, log, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from ..harness.stats.intervals import CONFIDENCE, WIDENED_LEVEL, Interval, t_quantile
from .data.processor_time import disturbed
from .data.row_groups import Group, Row, backends, groups
from .formatting import number_text
from .judging.pair import log_bounds, time_ratio
from .judging.ratio import Ratio

Numbers = NDArray[np.float64]
FEWEST_LENGTHS = 5  # that show whether a curve of three terms misses them
FURTHEST = 4  # times the longest measured N: beyond it the formula is not used
EXPONENT_MARGIN = 0.1  # an exponent of 1.1 doubles 7 % more than linear does
OFF_RATIO = 1.15  # largest difference of formula and measurement, if beyond the interval
NO_MISFIT = 0.99  # of samples of what a fit describes miss it by less than counts as a lack of fit


NOTHING = Interval(value=nan, low=nan, high=nan, units=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How the time of one backend grows with N on one problem.

    `exponents`: per length, between the lengths before and after it; None at both ends. The last
    is that of the longest lengths, which claims are about. `most`: the largest that longer ones may
    still show. `reason` says why there is no formula.
    `crossover`: the N from which c N^2 is more than b N, 0 if it is from the first on; None if no
    N^2 shows. `worst`: the length at which formula and measurement differ most, and the ratio.
    `describes` is false if they differ by more than 1.15 and more than the latency's interval:
    caches, kernels and clocks change with N, and the formula has no term for that. `disturbed`:
    other work competed for the cores in most blocks of some length; it slows long calls down more
    than those that end within a scheduler's slice, so time seems to grow faster than it does.
    """

    backend: str
    lengths: tuple[int, ...]
    time_ms: tuple[float, ...]
    exponents: tuple[Interval | None, ...]
    most: float = nan
    constant_ms: Interval = NOTHING
    per_token_ms: Interval = NOTHING
    per_pair_ms: Interval = NOTHING
    crossover: Interval | None = None
    worst: tuple[int, float] = (0, nan)
    describes: bool = False
    disturbed: bool = False
    reason: str = ""
    fit: "Fit | None" = field(repr=False, compare=False, default=None)

    @property
    def at_longest(self) -> Interval:
        """The exponent between the three longest lengths."""
        return next((one for one in reversed(self.exponents) if one is not None), NOTHING)


# ---- growth of rows ------------------------------------------------------------------------------


def growths(rows: Sequence[Row], over: str = "seq_len") -> Iterator[tuple[Group, list[Growth]]]:
    """Every problem with a backend timed at two or more lengths; lazy, as fits take time.

    `over`: the axis that grows, N if not given. What is said of N and lengths then holds for it.
    """
    for group in groups(rows, over):
        fits = [growth(group.rows, backend, over) for backend in backends(group.rows)]
        if several := [one for one in fits if len(one.lengths) > 1]:
            yield group, several


def growth(rows: Sequence[Row], backend: str, over: str = "seq_len") -> Growth:
    """Of one backend among the rows of one problem over N, or over another axis."""
    of_backend = (row for row in rows if row["backend"] == backend)
    timed = {row[over]: row for row in of_backend if row.get("latency_ms") is not None}
    mine = [timed[n] for n in sorted(timed)]
    exponents = [_exponent(mine, place, over) for place in range(len(mine))]
    found = Growth(
        backend=backend,
        lengths=tuple(row[over] for row in mine),
        time_ms=tuple(row["latency_ms"] for row in mine),
        exponents=tuple(exponents),
        most=_most([one for one in exponents if one is not None], mine),
        disturbed=disturbed(*mine),
    )
    if len(mine) >= FEWEST_LENGTHS:
        return _with_formula(found, mine, over)
    are = "is" if len(mine) == 1 else "are"
    reason = f"{FEWEST_LENGTHS} timed lengths are needed, and there {are} {len(mine)}"
    return replace(found, reason=reason)


def predict(found: Growth, n: int) -> Interval:
    """The time at another N in ms; NaN with a reason without a formula, beyond 4 times the longest
    N, or where the formula is not above 0.
    """
    reason = found.reason
    if n > FURTHEST * max(found.lengths, default=0):
        reason = reason or f"beyond {FURTHEST} times the longest measured N"
    if reason or found.fit is None:
        return replace(NOTHING, reason=reason)
    time_ms = found.fit.at(n)
    if not time_ms.value > 0:
        return replace(NOTHING, reason="by the formula no time is left there")
    return replace(time_ms, low=max(time_ms.low, 0.0)) if isfinite(time_ms.low) else time_ms


def interval_text(found: Interval) -> str:
    """`1.93 (1.90 to 1.97)`, and `2.00 (within 0.004)` where the digits would not differ.

    Without an empty interval; an infinite bound is `no end`.
    """
    if not isfinite(found.low):
        return number_text(found.value)
    if isfinite(found.high) and number_text(found.low) == number_text(found.high):
        reach = max(found.high - found.value, found.value - found.low)
        within = f" (within {number_text(reach)})" if reach else ""
        return f"{number_text(found.value)}{within}"
    high = number_text(found.high) if isfinite(found.high) else "no end"
    return f"{number_text(found.value)} ({number_text(found.low)} to {high})"


# ---- exponents -----------------------------------------------------------------------------------


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


def _exponent(rows: Sequence[Row], place: int, over: str) -> Interval | None:
    """Between the lengths before and after; wider by how far the five lengths around it are off the
    nearer of two smooth curves, a parabola in logarithms and the formula.
    """
    if not 0 < place < len(rows) - 1:
        return None
    before, after = rows[place - 1], rows[place + 1]
    found = slope(before, after, over)
    start = max(0, min(place - FEWEST_LENGTHS // 2, len(rows) - FEWEST_LENGTHS))
    around = rows[start : start + FEWEST_LENGTHS]
    if found is None or len(around) < FEWEST_LENGTHS:
        return found
    size = np.log([row[over] / after[over] for row in around])
    logs = np.log([row["latency_ms"] for row in around])
    parabola = _fitted(size[:, None] ** np.arange(3), logs, around)
    lack = parabola.lack and min(parabola.lack, _formula(around, over).lack)
    quantile = t_quantile(float(parabola.degrees.sum()), (1 + CONFIDENCE) / 2)
    more = quantile * sqrt(2) * lack / log(after[over] / before[over])
    return replace(
        found,
        low=found.value - hypot(found.value - found.low, more),
        high=found.value + hypot(found.high - found.value, more),
    )


def _most(exponents: Sequence[Interval], rows: Sequence[Row]) -> float:
    """Infinite where the exponent at the longest lengths is above that at the shortest: it still
    rises. Else what it would be without a fixed cost, which is at most the shortest time.
    """
    if not exponents or exponents[0].high < exponents[-1].low:
        return inf
    level = rows[-2]["latency_ms"]
    fixed = rows[0]["latency_ms"] * exp(log_bounds(rows[0])[1])
    return exponents[-1].high * level / (level - fixed) if level > fixed else inf


# ---- the formula ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Least squares through one value per length.

    `found`: [term]. `shifts` [term, length]: how far one standard error of a length moves each
    term. `degrees` [length]: of freedom of these errors. `lack`: of fit, the standard deviation of
    the lengths beyond the noise between processes; 0 unless it is shown. The errors include it.
    """

    found: Numbers
    shifts: Numbers
    degrees: Numbers
    lack: float

    def reach(self, of: Numbers) -> float:
        """Half the interval of a sum of so many of each term (Welch and Satterthwaite)."""
        squares = (of @ self.shifts) ** 2
        total = float(squares.sum())
        if not total > 0:
            return total  # NaN without intervals
        freedom = total**2 / float((squares**2 / self.degrees).sum())
        return t_quantile(freedom, (1 + CONFIDENCE) / 2) * sqrt(total)

    def interval(self, of: Numbers) -> Interval:
        value, reach = float(of @ self.found), self.reach(of)
        units = len(self.degrees)
        return Interval(value=value, low=value - reach, high=value + reach, units=units)

    def at(self, n: int) -> Interval:
        """The time in ms, if the terms are those of 1, N and N^2."""
        return self.interval(np.array([1.0, n, float(n) * n]))


def _fitted(terms: Numbers, aim: Numbers, rows: Sequence[Row]) -> Fit:
    """`terms` [length, term] and `aim` [length], whose errors are those of log T.

    What processes explain is pooled over the lengths: a few tell little of their spread.
    """
    from scipy.special import fdtri

    solver = np.linalg.pinv(terms)  # [term, length]
    found = solver @ aim
    missed = aim - terms @ found
    degrees = [max(1, _units(row) - 1) for row in rows]
    reach = [t_quantile(one, (1 + WIDENED_LEVEL) / 2) for one in degrees]
    errors = np.mean([log_bounds(row) for row in rows], axis=1) / reach
    spare, noise = len(aim) - len(found), float(np.mean(errors**2))
    ratio = float(missed @ missed) / spare / noise if noise > 0 else 1.0
    is_shown = ratio > float(fdtri(spare, sum(degrees), NO_MISFIT))
    lack = sqrt((ratio - 1) * noise) if is_shown else 0.0
    return Fit(
        found=np.asarray(found),
        shifts=np.asarray(solver * np.hypot(errors, lack)),
        degrees=np.array(degrees, dtype=float),
        lack=lack,
    )


def _formula(rows: Sequence[Row], over: str) -> Fit:
    """Of relative errors, so that short lengths count as much as long ones."""
    lengths = np.array([float(row[over]) for row in rows])
    times = np.array([row["latency_ms"] for row in rows])
    n, scale = lengths / lengths[-1], lengths[-1] ** np.arange(3)
    fit = _fitted(n[:, None] ** np.arange(3) / times[:, None], np.ones_like(n), rows)
    return replace(fit, found=fit.found / scale, shifts=fit.shifts / scale[:, None])


def _with_formula(found: Growth, rows: Sequence[Row], over: str) -> Growth:
    fit = _formula(rows, over)
    constant, per_token, per_pair = map(fit.interval, np.eye(3))
    times = {row[over]: fit.at(row[over]).value for row in rows}
    off = {row[over]: _off(times[row[over]], row["latency_ms"]) for row in rows}
    worst = max(off, key=lambda length: off[length])
    return replace(
        found,
        constant_ms=constant,
        per_token_ms=per_token,
        per_pair_ms=per_pair,
        crossover=_crossover(fit) if per_pair.low > 0 else None,
        worst=(worst, off[worst]),
        describes=all(
            off[row[over]] <= OFF_RATIO or _within(times[row[over]], row) for row in rows
        ),
        fit=fit,
    )


def _crossover(fit: Fit) -> Interval:
    """b / c with its interval after Fieller (1954), 0 at least: from the first N on."""
    ratio = fit.found[1] / fit.found[2]
    of = np.array([0.0, 1.0, -ratio])
    low = high = ratio
    if (reach := fit.reach(of)) > 0:
        covariance = fit.shifts @ fit.shifts.T
        widened = reach**2 / float(of @ covariance @ of)
        squares = np.outer(fit.found, fit.found) - widened * covariance
        root = sqrt(max(squares[1, 2] ** 2 - squares[1, 1] * squares[2, 2], 0.0))
        low, high = ((squares[1, 2] + side) / squares[2, 2] for side in (-root, root))
        high = high if squares[2, 2] > 0 else inf
    value, low, high = (max(float(one), 0.0) for one in (ratio, low, high))
    return Interval(value=value, low=low, high=high, units=len(fit.degrees))


def _units(row: Row) -> int:
    """The processes, or the blocks of a single one: they give the t its degrees of freedom."""
    filled = [sum(map(bool, process)) for process in row["block_ms"] if any(process)]
    return len(filled) if len(filled) > 1 else sum(filled)


def _off(time_ms: float, measured_ms: float) -> float:
    """Their ratio, above 1; infinite for a time of 0."""
    return exp(abs(log(time_ms / measured_ms))) if time_ms > 0 else inf


def _within(time_ms: float, row: Row) -> bool:
    low, high = row.get("latency_run_low_ms"), row.get("latency_run_high_ms")
    return low is not None and high is not None and low <= time_ms <= high
