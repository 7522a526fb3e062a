"""The claims that times and counters answer: C2, C3c and C11 to C13.

Verdicts come from intervals.
"""

from collections.abc import Sequence
from math import inf, isfinite

from ....harness.stats.intervals import Interval
from ...data.row_groups import Row, backends, family, groups
from ...formatting import beyond_text, count_text, number_text
from ...ratio import disturbed
from ...words import DISTURBED
from ..growth import EXPONENT_MARGIN, Growth, growths_of, interval_text
from ..heads import comparable, same_time, share_width
from ..polynomial import bytes_over_n, through
from ..recurrence import RECURRENT
from ..utilization import observed
from .claim_verdict import (
    ClaimVerdict,
    Evidence,
    Part,
    agreed,
    by_interval,
    deciding,
    jointly,
    part,
)
from .statement import Statement

LINEAR = ("sparse_local", "sparse_random", "linformer", "performer")
STRIDED, STRIDED_EXPONENT = "sparse_strided", 1.5
LOOP, FUSED = "naive", "fused"
SAME_CROSSING = 2  # at twice or half the N of a crossing the smaller part is still a third
PAST_CROSSING = 4  # times the N at which FLOPs cross: there their exponent is 1.8


def two_regimes(rows: Sequence[Row]) -> list[Part]:
    """C2: both N and N^2 are in the layer's time, and N^2 takes over where the FLOPs say."""
    layers = [row for row in full_attention(rows) if row["scope"] == "layer"]
    parts = []
    for backend in backends(layers):
        evidence = []
        for group, found in growths_of(layers, backend):
            crossing = _flop_crossing(group.rows)
            if not isfinite(crossing):  # a mask leaves no N² to be taken over by
                continue
            evidence.append((_regimes(found, crossing), _regimes_text(found, crossing)))
        parts += part(backend, evidence)
    return parts


def _regimes(found: Growth, crossing: float) -> ClaimVerdict:
    """Refuted also if N^2 does not show although it should."""
    if not found.describes or found.disturbed:
        return "inconclusive"
    is_long = found.lengths[-1] >= PAST_CROSSING * crossing
    if is_long and found.exponents[-1].high < 1.5:
        return "refuted"
    both = found.per_token_ms.low > 0 and found.per_pair_ms.low > 0
    if not both or found.crossover is None:
        return "inconclusive"
    where = (crossing / SAME_CROSSING, crossing * SAME_CROSSING)
    return by_interval(found.crossover.low, found.crossover.high, where)


def _regimes_text(found: Growth, crossing: float) -> str:
    text = "no crossover found"
    if found.crossover is not None:
        text = f"N² takes over at N = {interval_text(found.crossover)}"
    text += f"; by FLOPs at N = {number_text(crossing)}"
    if not found.describes:
        n, times = found.worst
        text += f"; the formula is off by {number_text(times)} times at N = {count_text(n)}"
    return text + (DISTURBED if found.disturbed else "")


def _flop_crossing(rows: Sequence[Row]) -> float:
    """Where the quadratic part of the FLOPs equals the linear one: 2 d for a plain layer."""
    found = through({row["seq_len"]: row["work_flops"] for row in rows})
    return float(found.linear / found.quadratic) if found and found.quadratic > 0 else inf


def time_of_heads(rows: Sequence[Row]) -> list[Part]:
    """C3c: the equivalence test for every number of heads on every problem, per backend."""
    answers: dict[str, ClaimVerdict] = {
        "yes": "supported",
        "no": "refuted",
        "undecided": "inconclusive",
    }
    by_backend: dict[str, list[Evidence]] = {}
    for group, costs in comparable(list(rows)):
        for cost in costs:
            found = same_time(cost)
            if found is not None and share_width(group):
                text = f"h = {cost.heads} at {group.at}: {found.text}"
                verdict = answers[found.answer]
                if disturbed(cost.row, cost.one):
                    verdict = "inconclusive"
                    text += "" if found.noise_shown else DISTURBED
                by_backend.setdefault(cost.backend, []).append((verdict, text))
    parts = []
    for backend, evidence in by_backend.items():
        verdicts = [verdict for verdict, _ in evidence]
        counts = ", ".join(
            f"{answer} in {verdicts.count(verdict)}"
            for answer, verdict in answers.items()
            if verdict in verdicts
        )
        wanted = "refuted" if "refuted" in verdicts else agreed(verdicts)
        shown = evidence[verdicts.index(wanted)][1]
        parts += part(backend, evidence, f"same time: {counts} of {len(verdicts)}; {shown}")
    return parts


def linear_growth(rows: Sequence[Row]) -> list[Part]:
    """C11: the exponent of time at the longest N, and no N^2 in the bytes.

    A stride of sqrt(N) makes the exponent 1.5.
    """
    parts = []
    for backend in backends(rows):
        base = family(backend)
        if base not in (*LINEAR, STRIDED):
            continue
        claimed = STRIDED_EXPONENT if base == STRIDED else 1.0
        evidence = []
        for group, found in growths_of(rows, backend):
            exponent = _last_exponent(found, by_slope=base == STRIDED)
            verdicts = [_growth_verdict(found, exponent, claimed)]
            text = f"N^{interval_text(exponent)} in time at N = {count_text(found.lengths[-1])}"
            text += DISTURBED if found.disturbed else ""
            memory = bytes_over_n(group.rows, backend) if base != STRIDED else None
            if memory is not None and memory.exact:
                verdicts.append("supported" if memory.quadratic == 0 else "refuted")
                text += f", {'no' if memory.quadratic == 0 else 'some'} N² in bytes"
            evidence.append((jointly(verdicts), text))
        parts += part(backend, evidence)
    return parts


def recurrent(rows: Sequence[Row]) -> list[Part]:
    """C12: linear in N, and fewer active SMs than attention on the same problem."""
    parts = []
    for backend in backends(rows):
        if family(backend) not in RECURRENT:
            continue
        fits = [found for _, found in growths_of(rows, backend)]
        exponents = [_last_exponent(found, by_slope=False) for found in fits]
        pairs = [
            pair for attention in (FUSED, "sdpa") for pair in _both_active(rows, backend, attention)
        ]
        growth = agreed(
            _growth_verdict(found, exponent, 1.0)
            for found, exponent in zip(fits, exponents, strict=True)
        )
        active = agreed(_less(ours, theirs) for ours, theirs in pairs)
        if growth == active == "not run":
            continue
        texts = [
            f"N^{interval_text(exponents[-1])} in time" if exponents else "fewer than five lengths",
            _active_text(*pairs[-1]) if pairs else "no counters of a GPU",
        ]
        parts.append(Part(of=backend, verdict=jointly([growth, active]), numbers=", ".join(texts)))
    return parts


def better_used(rows: Sequence[Row]) -> list[Part]:
    """C13: active SMs of the fused layer and of the loop, by performance counters only."""
    evidence = [
        (_less(loop, fused), _active_text(loop, fused))
        for loop, fused in _both_active(rows, LOOP, FUSED)
    ]
    numbers = f"{deciding(evidence)}, {len(evidence)} compared" if evidence else ""
    return part(f"{FUSED} against {LOOP}", evidence, numbers)


# ---- helpers -------------------------------------------------------------------------------------


def full_attention(rows: Sequence[Row]) -> list[Row]:
    """Without backends that compute something else: claims on quadratic growth exclude them."""
    others = (*LINEAR, STRIDED, *RECURRENT)
    return [row for row in rows if family(row["backend"]) not in others]


def _last_exponent(found: Growth, *, by_slope: bool) -> Interval:
    """The exponent at the longest N by the formula.

    As measured over the last three lengths if `by_slope`, or if the formula does not fit.
    """
    measured = next((slope for slope in reversed(found.slopes) if slope is not None), None)
    use_slope = measured is not None and (by_slope or not found.describes)
    return measured if measured and use_slope else found.exponents[-1]


def _growth_verdict(fit: Growth, found: Interval, claimed: float) -> ClaimVerdict:
    """Inconclusive below the claim: constant cost hides the growth that a longer N may show."""
    if fit.disturbed or found.high < claimed:
        return "inconclusive"
    return by_interval(
        found.low, found.high, (claimed - EXPONENT_MARGIN, claimed + EXPONENT_MARGIN)
    )


def _both_active(rows: Sequence[Row], one: str, other: str) -> list[tuple[Interval, Interval]]:
    """The share of active SMs of two backends, for every problem with counters of both."""
    counted = [
        row
        for row in rows
        if row.get("utilization_tier") == "gpm" and row["backend"] in (one, other)
    ]
    found = []
    for group in groups(counted, None):
        values = ((row["backend"], observed(row, "sm_active")) for row in group.rows)
        active = {backend: value for backend, value in values if value is not None}
        if one in active and other in active:
            found.append((active[one], active[other]))
    return found


def _less(ours: Interval, theirs: Interval) -> ClaimVerdict:
    """Supported if our interval lies below theirs; inconclusive without intervals."""
    if ours.high < theirs.low:
        return "supported"
    return "refuted" if ours.low > theirs.high else "inconclusive"


def _active_text(ours: Interval, theirs: Interval) -> str:
    one, other = (
        f"{100 * found.value:.0f} %{beyond_text(found.value)}" for found in (ours, theirs)
    )
    return f"SMs active {one} against {other}"


CLAIMS: dict[str, Statement] = {
    "C2": Statement(
        statement=(
            "A layer's time is O(N² d) for long sequences and O(N d²) below, and changes where its"
            " FLOPs do."
        ),
        tested=(
            "a + b N + c N² fitted to the layer's time: intervals of b and c above 0; crossover"
            " b/c within 2 times that of the FLOPs"
        ),
        to_run="scope: [layer], five lengths or more",
        test=lambda rows, _: two_regimes(rows),
    ),
    "C3c": Statement(
        statement="... and the time of one head.",
        tested=(
            "equivalence test within 5 % (two one-sided tests on paired ratios), for every h and"
            " problem"
        ),
        to_run="heads: [1, 2, 8, ...] with contrast: [heads]",
        test=lambda rows, _: time_of_heads(rows),
    ),
    "C11": Statement(
        statement=(
            "Local and random patterns, Linformer and Performer are linear in N; strides of sqrt(N)"
            " give N^1.5."
        ),
        tested="exponent of time at the longest N within 0.1; no N² in the exact bytes",
        to_run=(
            "backends sparse_local, sparse_random, sparse_strided, linformer or performer, five"
            " lengths or more"
        ),
        test=lambda rows, _: linear_growth(rows),
        of_inexact=True,
    ),
    "C12": Statement(
        statement="A recurrent layer costs O(N d²) and cannot use the parallelism.",
        tested=(
            "exponent of time at the longest N within 0.1 of 1 (growth with d is not tested); fewer"
            " active SMs than attention"
        ),
        to_run=(
            "backend rnn, five lengths or more, measure: [latency, utilization], on a GPU with"
            " performance counters"
        ),
        test=lambda rows, _: recurrent(rows),
        of_inexact=True,
    ),
    "C13": Statement(
        statement="The fused layer uses the GPU better than the loop over heads.",
        tested="intervals of the share of active SMs do not overlap (performance counters only)",
        to_run=(
            "naive and fused, measure: [latency, utilization], on a GPU with performance counters"
        ),
        test=lambda rows, _: better_used(rows),
    ),
}
