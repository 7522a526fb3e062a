"""The claims on how time grows over N, by the exponents and crossovers of fits: C2, C11, C12."""

from collections.abc import Iterator

from ...harness.stats.intervals import Interval
from ..data.exactness import RECURRENT
from ..data.polynomial import bytes_over_n, through
from ..data.row_groups import backends, family
from ..formatting import count_text, number_text
from ..growth_fit import EXPONENT_MARGIN, Growth, growths_of, interval_text
from ..words import DISTURBED
from .statement import LINEAR, STRIDED, Measured, claim
from .times import fewer_active
from .verdict import ClaimVerdict, Evidence, agreed, by_interval, exactly, jointly

EXPONENTS = dict.fromkeys(LINEAR, 1.0) | {STRIDED: 1.5}
SAME_CROSSING = 2  # at twice or half the N of a crossing the smaller part is still a third
PAST_CROSSING = 4  # times the N at which FLOPs cross: there their exponent is 1.8


@claim(
    "C2",
    "A layer's time is O(N² d) for long sequences and O(N d²) below, and changes where its FLOPs"
    " do.",
    tested=(
        "a + b N + c N² fitted to the layer's time: intervals of b and c above 0; crossover b/c"
        " within 2 times that of the FLOPs"
    ),
    needs="scope: [layer], five lengths or more",
)
def two_regimes(run: Measured) -> Iterator[Evidence]:
    layers = [row for row in run.quadratic if row["scope"] == "layer"]
    for backend in backends(layers):
        for group, found in growths_of(layers, backend):
            counts = through({row["seq_len"]: row["work_flops"] for row in group.rows})
            if not counts or counts.quadratic <= 0:
                continue  # a mask leaves no N² to be taken over by
            crossing = float(counts.linear / counts.quadratic)  # 2 d for a plain layer
            text = "no crossover found"
            if found.crossover is not None:
                text = f"N² takes over at N = {interval_text(found.crossover)}"
            text += f"; by FLOPs at N = {number_text(crossing)}"
            if not found.describes:
                n, times = found.worst
                text += f"; the formula is off by {number_text(times)} times at N = {count_text(n)}"
            text += DISTURBED if found.disturbed else ""
            yield Evidence(backend, _regimes(found, crossing), text)


def _regimes(found: Growth, crossing: float) -> ClaimVerdict:
    """Refuted also if N^2 does not show although it should."""
    if not found.describes or found.disturbed:
        return "not decided"
    if found.lengths[-1] >= PAST_CROSSING * crossing and found.exponents[-1].high < 1.5:
        return "refuted"
    if min(found.per_token_ms.low, found.per_pair_ms.low) <= 0 or found.crossover is None:
        return "not decided"
    where = (crossing / SAME_CROSSING, crossing * SAME_CROSSING)
    return by_interval(found.crossover.low, found.crossover.high, where)


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
            verdicts = [_grows(found, exponent, EXPONENTS[family(backend)])]
            text = f"N^{interval_text(exponent)} in time at N = {count_text(found.lengths[-1])}"
            text += DISTURBED if found.disturbed else ""
            memory = None if strided else bytes_over_n(group.rows, backend)
            if memory is not None and memory.exact:
                verdicts.append(exactly(memory.quadratic == 0))
                text += f", {'no' if memory.quadratic == 0 else 'some'} N² in bytes"
            yield Evidence(backend, jointly(verdicts), text, half=family(backend))


@claim(
    "C12",
    "A recurrent layer costs O(N d²) and cannot use the parallelism.",
    tested=(
        "exponent of time at the longest N within 0.1 of 1 (growth with d is not tested); fewer"
        " active SMs than attention"
    ),
    needs=(
        "backend rnn, five lengths or more, measure: [latency, utilization], on a GPU with"
        " performance counters"
    ),
)
def recurrent(run: Measured) -> Iterator[Evidence]:
    for backend in backends(row for row in run.every if family(row["backend"]) in RECURRENT):
        fits = [
            (found, _exponent(found, by_slope=False)) for _, found in growths_of(run.every, backend)
        ]
        used = [one for of in ("fused", "sdpa") for one in fewer_active(run.every, backend, of)]
        if fits or used:
            grows = agreed(_grows(found, exponent, 1.0) for found, exponent in fits)
            active = agreed(one.verdict for one in used)
            time = f"N^{interval_text(fits[-1][1])} in time" if fits else "fewer than five lengths"
            use = used[-1].numbers if used else "no counters of a GPU"
            yield Evidence(backend, jointly([grows, active]), f"{time}, {use}")


def _exponent(found: Growth, *, by_slope: bool) -> Interval:
    """At the longest N by the formula.

    As measured over the last three lengths if `by_slope`, or if the formula does not fit.
    """
    measured = next((slope for slope in reversed(found.slopes) if slope is not None), None)
    use_slope = measured is not None and (by_slope or not found.describes)
    return measured if measured and use_slope else found.exponents[-1]


def _grows(fit: Growth, found: Interval, claimed: float) -> ClaimVerdict:
    """Inconclusive below the claim: constant cost hides the growth that a longer N may show."""
    if fit.disturbed or found.high < claimed:
        return "not decided"
    return by_interval(
        found.low, found.high, (claimed - EXPONENT_MARGIN, claimed + EXPONENT_MARGIN)
    )
