"""The claims on how time grows over N and d, by the exponents and crossovers of fits: C2, C11, C12
and C17 to C19.
"""

from collections.abc import Iterator, Sequence
from math import log
from typing import Any

from ...harness.rows.findings import ThreadGain
from ...harness.stats.intervals import Interval
from ..data.exactness import RECURRENT
from ..data.polynomial import bytes_over_n, flops_over
from ..data.row_groups import Group, Row, backends, by, family, groups
from ..formatting import count_text, number_text
from ..growth_fit import EXPONENT_MARGIN, Growth, growths_of, interval_text
from ..ratio import ratio_of_intervals
from .statement import LINEAR, STRIDED, Measured, claim
from .times import PAST_CROSSING, fewer_active, less_gain
from .verdict import BUSY, ClaimVerdict, Evidence, by_interval, exactly, jointly, needed

EXPONENTS = dict.fromkeys(LINEAR, 1.0) | {STRIDED: 1.5}
SAME_CROSSING = 2  # at twice or half the N of a crossing the smaller part is still a third
FEWEST_WIDTHS = 3
MOVES = (0.5, 1.5)  # exponents over d of what is in proportion to it, but for the time of a softmax
LONG, BELOW, WHERE = "N² for long sequences", "N below", "where FLOPs cross"
COSTS = ("FLOPs", "time")
RECURRENCE = ("growth with N", "growth with d", "parallelism")


@claim(
    "C2",
    "A layer's time is O(N² d) for long sequences and O(N d²) below, and changes where its FLOPs"
    " do.",
    tested=(
        "a + b N + c N² fitted to the layer's time: intervals of b and c above 0; crossover b/c"
        " within 2 times that of the FLOPs"
    ),
    needs="scope: [layer], five lengths or more",
    halves=(LONG, BELOW, WHERE),
)
def two_regimes(run: Measured) -> Iterator[Evidence]:
    for backend, _, found, crossing in _layers(run):
        verdicts, bounds = _regimes(found, crossing)
        text = f"N^{interval_text(found.exponents[-1])} at N = {count_text(found.lengths[-1])}"
        texts = {LONG: text, BELOW: f"{interval_text(found.per_token_ms)} ms per N"}
        texts[WHERE] = f"{_overtakes(found)}; by FLOPs at N = {number_text(crossing)}"
        for half, verdict in verdicts.items():
            if verdict == "not run":
                why = f"; too close to the shortest N, {found.lengths[0]}"
                yield Evidence(backend, verdict, texts[half] + why, half)
            elif doubt := _doubt(found):
                yield Evidence(backend, "not decided", texts[half] + doubt, half)
            else:
                why = needed(verdict, *bounds[half]) if half in bounds else ""
                yield Evidence(backend, verdict, texts[half] + why, half)


def _doubt(found: Growth) -> str:
    """Why a fit decides nothing, or ""."""
    if found.describes:
        return BUSY if found.disturbed else ""
    n, off = found.worst
    return f"; the formula is off by {number_text(off)} times at N = {count_text(n)}"


def _layers(run: Measured) -> Iterator[tuple[str, Group, Growth, float]]:
    """Each fit of a layer's time over N, with the N at which its FLOPs cross."""
    layers = [row for row in run.quadratic if row["scope"] == "layer"]
    for backend in backends(layers):
        for group, found in growths_of(layers, backend):
            counts = flops_over(group.rows)
            # a mask may leave no N² to be taken over by
            if counts and counts.quadratic > 0:
                yield backend, group, found, float(counts.linear / counts.quadratic)


def _overtakes(found: Growth) -> str:
    if (over := found.overtaking) is None:
        return "no N² found"
    return f"N² takes over at N = {interval_text(over)}"


Bounds = tuple[tuple[float, float, float], tuple[float, ...]]


def _regimes(found: Growth, crossing: float) -> tuple[dict[str, ClaimVerdict], dict[str, Bounds]]:
    """By half, also with the interval that decides and the ends that it must not hold.

    What FLOPs say of N below the crossing is tested if a quarter of it was measured, or less. There
    four fifths of them are in N: if time is in N² even there, it refutes the statement.
    """
    over, n, c = found.overtaking, found.per_token_ms, found.per_pair_ms
    is_past = found.lengths[-1] >= PAST_CROSSING * crossing
    where = (crossing / SAME_CROSSING, crossing * SAME_CROSSING)
    square: ClaimVerdict = "supported" if c.low > 0 else "not decided"
    verdicts: dict[str, ClaimVerdict] = {
        LONG: "refuted" if is_past and found.exponents[-1].high < 1.5 else square,
        BELOW: "supported" if n.low > 0 else "not decided",
        WHERE: by_interval(over.low, over.high, where) if over else "not decided",
    }
    if found.lengths[0] * PAST_CROSSING > crossing:
        verdicts |= {BELOW: "not run", WHERE: "not run"}
    elif over and over.high < crossing / PAST_CROSSING:
        verdicts[BELOW] = "refuted"
    # No coefficient is below 0, so that a bound of 0 hides how far below the interval would reach.
    bounds: dict[str, Bounds] = {
        half: ((one.value, min(one.low, 2 * one.value - one.high), one.high), (0.0,))
        for half, one in ((LONG, c), (BELOW, n))
        if one.value > 0
    }
    if over:
        bounds.setdefault(BELOW, ((over.value, over.low, over.high), (crossing / PAST_CROSSING,)))
        bounds[WHERE] = ((over.value, over.low, over.high), where)
    return verdicts, bounds


@claim(
    "C17",
    "The quadratic part, N² d, is linear in d.",
    tested=(
        "exponent over d_model at the widest one, of a core with one number of heads, within 0.1 of"
        " 1: of FLOPs, an exact count, and of time"
    ),
    needs="scope: [core], five d_model or more",
    halves=COSTS,
)
def quadratic_part(run: Measured) -> Iterator[Evidence]:
    cores = [row for row in run.quadratic if row["scope"] == "core"]
    yield from _flops_over_width(cores, 1.0)
    yield from _over_width(cores, 1.0, COSTS[1])


@claim(
    "C18",
    "The projections, N d², are quadratic in d.",
    tested="the same of a layer at N of at most an eighth of the widest d_model, within 0.1 of 2",
    needs="scope: [layer], five d_model or more, the widest at least 8 N",
    halves=COSTS,
)
def projections(run: Measured) -> Iterator[Evidence]:
    layers = [row for row in run.quadratic if row["scope"] == "layer"]
    widest = max((row["d_model"] for row in layers), default=0)
    short = [row for row in layers if 8 * row["seq_len"] <= widest]
    yield from _flops_over_width(short, 2.0)
    yield from _over_width(short, 2.0, COSTS[1])


def _flops_over_width(rows: Sequence[Row], claimed: float) -> Iterator[Evidence]:
    for group in groups(rows, "d_model"):
        if counts := flops_over(group.rows, "d_model"):
            d = counts.solved[-1]
            exponent = float((counts.linear * d + 2 * counts.quadratic * d * d) / counts.at(d))
            near = abs(exponent - claimed) <= EXPONENT_MARGIN
            text = f"d^{number_text(exponent)} at d = {d}, {group.at}"
            yield Evidence("FLOPs", exactly(near), text, COSTS[0])


def _over_width(rows: Sequence[Row], claimed: float, half: str) -> Iterator[Evidence]:
    """By time."""
    for backend in backends(rows):
        for group, found in growths_of(rows, backend, "d_model"):
            exponent = _exponent(found, by_slope=False)
            text = f"d^{interval_text(exponent)} in time at d = {found.lengths[-1]}, {group.at}"
            verdict, why = _grows(found, exponent, claimed)
            yield Evidence(backend, verdict, text + why, half)


@claim(
    "C19",
    "The N from which the quadratic half dominates grows in proportion to d.",
    tested=(
        "crossovers of C2 at three d_model or more: their exponent over d_model, from the narrowest"
        " to the widest, within 0.5 of 1"
    ),
    needs="scope: [layer], three d_model or more, five lengths or more of each",
)
def moving_crossover(run: Measured) -> Iterator[Evidence]:
    def same(one: tuple[str, Group, Growth, float]) -> tuple[Any, ...]:
        return one[0], *(value for axis, value in one[1].problem.items() if axis != "d_model")

    for (backend, *_), some in by(_layers(run), same).items():
        found = {group.problem["d_model"]: (fit, flops) for _, group, fit, flops in some}
        if len(found) < FEWEST_WIDTHS:
            continue
        fits = [fit for fit, _ in found.values()]
        texts = [
            f"{_overtakes(fit)}, by FLOPs at {number_text(flops)}, for d = {d}"
            for d, (fit, flops) in sorted(found.items())
        ]
        narrow, wide = min(found), max(found)
        first, last = (found[d][0].overtaking for d in (narrow, wide))
        verdict: ClaimVerdict = "not decided"
        why = "; the first or the last N is not known well enough to compare them"
        if first and last and first.low > 0 and last.low > 0:
            ratio = ratio_of_intervals(last, first, ())
            value, low, high = (log(end) / log(wide / narrow) for end in ratio)
            moved = Interval(value=value, low=low, high=high, units=2)
            texts.insert(0, f"as d^{interval_text(moved)}")
            why = ""
            if all(fit.describes and not fit.disturbed for fit in fits):
                verdict = by_interval(low, high, MOVES)
                why = needed(verdict, (value, low, high), MOVES)
        why = BUSY if any(fit.disturbed for fit in fits) else why
        yield Evidence(backend, verdict, "; ".join(texts) + why)


@claim(
    "C11",
    "Local and random patterns, Linformer and Performer are linear in N; strides of sqrt(N) give"
    " N^1.5.",
    tested="exponent of time at the longest N within 0.1; no N² in the exact bytes",
    needs=(
        "backends sparse_local, sparse_random, sparse_strided, linformer and performer, five"
        " lengths or more"
    ),
    halves=tuple(EXPONENTS),
)
def linear_growth(run: Measured) -> Iterator[Evidence]:
    for backend in backends(row for row in run.every if family(row["backend"]) in EXPONENTS):
        strided = family(backend) == STRIDED
        for group, found in growths_of(run.every, backend):
            exponent = _exponent(found, by_slope=strided)
            verdict, why = _grows(found, exponent, EXPONENTS[family(backend)])
            text = f"N^{interval_text(exponent)} in time at N = {count_text(found.lengths[-1])}"
            verdicts = [verdict]
            memory = None if strided else bytes_over_n(group.rows, backend)
            if memory is not None and memory.exact:
                verdicts.append(exactly(memory.quadratic == 0))
                text += f", {'no' if memory.quadratic == 0 else 'some'} N² in bytes"
            yield Evidence(backend, jointly(verdicts), text + why, half=family(backend))


@claim(
    "C12",
    "A recurrent layer costs O(N d²) and cannot use the parallelism.",
    tested=(
        "exponents of time at the longest N within 0.1 of 1 and at the widest d_model within 0.1 of"
        " 2; fewer active SMs than attention, or less gained by threads"
    ),
    needs=(
        "backend rnn, five lengths or more, five d_model or more, and measure: [latency,"
        " utilization] on a GPU with performance counters, or on a CPU studies: [threads]"
    ),
    study=ThreadGain,
    halves=RECURRENCE,
)
def recurrent(run: Measured) -> Iterator[Evidence]:
    rows = [row for row in run.every if family(row["backend"]) in RECURRENT]
    for backend in backends(rows):
        for _, found in growths_of(rows, backend):
            exponent = _exponent(found, by_slope=False)
            verdict, why = _grows(found, exponent, 1.0)
            text = f"N^{interval_text(exponent)} in time{why}"
            yield Evidence(backend, verdict, text, RECURRENCE[0])
        for of in ("fused", "sdpa"):
            for one in fewer_active(run.every, backend, of):
                yield one._replace(of=backend, half=RECURRENCE[2])
        for one in less_gain(run, backend):
            yield one._replace(of=backend, half=RECURRENCE[2])
    yield from _over_width(rows, 2.0, RECURRENCE[1])


def _exponent(found: Growth, *, by_slope: bool) -> Interval:
    """At the longest N by the formula.

    As measured over the last three lengths if `by_slope`, or if the formula does not fit.
    """
    measured = next((slope for slope in reversed(found.slopes) if slope is not None), None)
    use_slope = measured is not None and (by_slope or not found.describes)
    return measured if measured and use_slope else found.exponents[-1]


def _grows(fit: Growth, found: Interval, claimed: float) -> tuple[ClaimVerdict, str]:
    """Inconclusive below the claim: constant cost hides the growth that a longer N may show.

    And why it is not decided, in words.
    """
    if fit.disturbed:
        return "not decided", BUSY
    margin = (claimed - EXPONENT_MARGIN, claimed + EXPONENT_MARGIN)
    if found.high < margin[0]:
        return "not decided", ": constant cost may hide more, and a longer or wider one would tell"
    verdict = by_interval(found.low, found.high, margin)
    return verdict, needed(verdict, (found.value, found.low, found.high), margin)
