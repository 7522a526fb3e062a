"""The claims that times and counters answer: C2, C3c, C4, C10 to C13, and C16 without its study.

Verdicts come from intervals.
"""

from collections.abc import Sequence
from math import inf, isfinite
from typing import Any

from ....harness.stats import Interval
from ...data.row_groups import Row, backends, family, groups, problem
from ...formatting import beyond_text, count_text, number_text
from ..errors import ALLOWED_RATIO
from ..growth import EXPONENT_MARGIN, Growth, growths_of, interval_text
from ..heads import comparable, same_time
from ..polynomial import bytes_over_n, through
from ..ratio import Ratio, disturbed, time_ratio
from ..recurrence import RECURRENT
from ..utilization import observed
from .claim_verdict import (
    DISTURBED,
    ClaimVerdict,
    Evidence,
    Part,
    agreed,
    by_interval,
    deciding,
    jointly,
    part,
)
from .studies import HALF, of_study

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
            if found is not None and group.problem["d_k"] == "d_model/h":
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


def one_projection(rows: Sequence[Row], findings: Sequence[Any]) -> list[Part]:
    """C4: the loop's time over the fused layer's, on problems where both results are correct.

    Both passed the correctness check, so they are equal. A study projection_equality (holds: bool)
    tests the equality more strictly.
    """
    studied = [one.get("holds") for one in of_study(findings, "projection_equality")]
    layers = [row for row in rows if row["scope"] == "layer" and (row["heads"] or 0) > 1]
    evidence: list[Evidence] = []
    for group in groups(layers, None):
        by_backend = {row["backend"]: row for row in group.rows}
        loop, fused = by_backend.get(LOOP), by_backend.get(FUSED)
        ratio = time_ratio(loop, fused) if loop and fused else None
        if ratio is None or loop is None or fused is None:
            continue
        errors = [row.get("error_ratio") for row in (loop, fused)]
        known = [error for error in errors if error is not None]
        equal: ClaimVerdict = "inconclusive"
        if any(type(holds) is bool for holds in studied):
            equal = "supported" if all(holds is True for holds in studied) else "refuted"
        elif len(known) == 2:
            equal = "supported" if max(known) <= ALLOWED_RATIO else "refuted"
        text = (
            f"loop {ratio.text} at {group.at}; equal:"
            f" {'yes' if equal == 'supported' else 'not shown'}"
        )
        faster = by_interval(ratio.low, ratio.high, (1.0, inf))
        evidence.append((jointly([equal, faster]), text))
    return part(f"{FUSED} against {LOOP}", evidence)


def core_share(rows: Sequence[Row]) -> list[Part]:
    """C10: the core takes more than half of the layer's time at the longest N.

    That N is past the crossover of the FLOPs.
    """
    return [_core_part(backend, found, bottleneck=False) for backend, found in _cores(rows)]


def outside_share(rows: Sequence[Row]) -> list[Part]:
    """C16 without a study: everything outside the core, which includes joining and W_O.

    A small share refutes the claim; a large one proves nothing.
    """
    return [_core_part(backend, found, bottleneck=True) for backend, found in _cores(rows)]


def _cores(rows: Sequence[Row]) -> list[tuple[str, tuple[Row, Ratio, bool]]]:
    """Per backend, the longest problem with both scopes timed.

    The layer's row, core over layer, and whether N is past the crossover.
    """
    found: dict[str, tuple[Row, Ratio, bool]] = {}
    known = full_attention(rows)
    cores = {_key(row): row for row in known if row["scope"] == "core"}
    for row in known:
        core = cores.get(_key(row)) if row["scope"] == "layer" else None
        ratio = time_ratio(core, row) if core is not None else None
        best = found.get(row["backend"])
        if core and ratio and (best is None or row["seq_len"] > best[0]["seq_len"]):
            past = row["work_flops"] > 2 * (row["work_flops"] - core["work_flops"])
            found[row["backend"]] = (row, ratio, past)
    return list(found.items())


def _key(row: Row) -> tuple[Any, ...]:
    return row["backend"], *(value for axis, value in problem(row).items() if axis != "scope")


def _core_part(backend: str, found: tuple[Row, Ratio, bool], *, bottleneck: bool) -> Part:
    row, ratio, past = found
    verdict: ClaimVerdict = "inconclusive"
    decides = past and not ratio.disturbed
    if decides and bottleneck:
        verdict = "refuted" if ratio.low > HALF else "inconclusive"
    elif decides:
        verdict = by_interval(ratio.low, ratio.high, (HALF, inf))
    outside, low, high = (max(0.0, 1 - share) for share in (ratio.value, ratio.high, ratio.low))
    text = f"{outside:.0%} of the layer is outside its core at N = {count_text(row['seq_len'])}"
    text += f" ({low:.0%} to {high:.0%})" if isfinite(ratio.low) else ""
    text += "" if past else ", which is not past the crossover"
    text += DISTURBED if ratio.disturbed else ""
    return Part(of=backend, verdict=verdict, numbers=text)


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
    one, other = (f"{found.value:.0%}{beyond_text(found.value)}" for found in (ours, theirs))
    return f"SMs active {one} against {other}"
