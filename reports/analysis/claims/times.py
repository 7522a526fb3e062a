"""The claims that times and counters answer: C2, C3c, C4, C10 to C13, and C16 where no study
answers it. Verdicts come from intervals.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from ....harness.stats import Interval
from ...data.row_groups import Row, backends, groups, problem
from ...formatting import count_text, number_text
from .claim_verdict import Part, Verdict, by_interval, jointly, over_problems
from .counts import bytes_over_n
from ..growth import Growth, growths_of
from ..heads import comparable, same_time
from ..polynomial import through
from ..ratio import Ratio, time_ratio
from ..utilization import seen

EXPONENT_MARGIN = 0.1  # an exponent of 1.1 doubles 7 % more than linear does
LINEAR = ("sparse_local", "sparse_random", "linformer", "performer")
STRIDED, STRIDED_EXPONENT = "sparse_strided", 1.5
RECURRENT = ("rnn", "lstm")
LOOP, FUSED = "naive", "fused"
ERROR_LIMIT = 2.0  # of the gate: the error of an honest implementation, doubled
PAST_CROSSING = 4  # times the N at which FLOPs cross: there their exponent is 1.8
HALF = 0.5


def two_regimes(rows: Sequence[Row]) -> list[Part]:
    """C2: both N and N^2 are in the time of the layer, beyond doubt."""
    layers = [row for row in full_attention(rows) if row["scope"] == "layer"]
    parts = []
    for backend in backends(layers):
        outcomes = []
        for group, found in growths_of(layers, backend):
            crossing = _flop_crossing(group.rows)
            outcomes.append((_regimes(found, crossing), _regimes_text(found, crossing)))
        if outcomes:
            parts.append(
                Part(
                    of=backend,
                    verdict=over_problems(verdict for verdict, _ in outcomes),
                    numbers=outcomes[0][1],
                )
            )
    return parts


def _regimes(found: Growth, crossing: float) -> Verdict:
    if not found.describes:
        return "inconclusive"
    if found.per_token_ms.low > 0 and found.per_pair_ms.low > 0:
        return "supported"
    return (
        "refuted"
        if found.lengths[-1] >= PAST_CROSSING * crossing and found.exponents[-1].high < 1.5
        else "inconclusive"
    )


def _regimes_text(found: Growth, crossing: float) -> str:
    where = (
        "no crossover found"
        if found.crossover is None
        else f"N² takes over at N = {interval_text(found.crossover)}"
    )
    off = (
        ""
        if found.describes
        else (
            f"; the formula is off by {number_text(found.worst[1])} times at N ="
            f" {count_text(found.worst[0])}"
        )
    )
    return f"{where}; by FLOPs at N = {number_text(crossing)}{off}"


def _flop_crossing(rows: Sequence[Row]) -> float:
    """Where the quadratic part of the FLOPs is as large as the linear one: 2 d for a plain
    layer.
    """
    found = through({row["seq_len"]: row["work_flops"] for row in rows})
    return (
        float(found.linear / found.quadratic)
        if found is not None and found.quadratic > 0
        else float("inf")
    )


def time_of_heads(rows: Sequence[Row]) -> list[Part]:
    """C3c: the equivalence test for every number of heads on every problem, per backend."""
    verdicts: dict[str, list[Verdict]] = {}
    shown: dict[str, str] = {}
    words: dict[str, Verdict] = {"yes": "supported", "no": "refuted", "undecided": "inconclusive"}
    for group, costs in comparable(list(rows)):
        for cost in costs:
            if cost.time is not None and group.problem["d_k"] == "d_model/h":
                verdicts.setdefault(cost.backend, []).append(words[same_time(cost) or "undecided"])
                said = (
                    f"h = {cost.heads} at N = {count_text(group.problem['seq_len'])}:"
                    f" {cost.time.text}"
                )
                if cost.backend not in shown or (
                    verdicts[cost.backend][-1] == "refuted"
                    and "refuted" not in verdicts[cost.backend][:-1]
                ):
                    shown[cost.backend] = said  # the first that refutes, else the first
    parts = []
    for backend, found in verdicts.items():
        counts = ", ".join(
            f"{word} in {found.count(verdict)}"
            for word, verdict in words.items()
            if verdict in found
        )
        parts.append(
            Part(
                of=backend,
                verdict=over_problems(found),
                numbers=f"{counts} of {len(found)}; {shown[backend]}",
            )
        )
    return parts


def one_projection(rows: Sequence[Row], findings: Sequence[Any]) -> list[Part]:
    """C4: the loop over the fused layer in time, on problems where both passed the gate, which is
    their equality.

    A study projection_equality (holds: bool) says it more sharply where there is one.
    """
    studied = [
        one.get("holds")
        for one in findings
        if isinstance(one, dict) and one.get("study") == "projection_equality"
    ]
    layers = [row for row in rows if row["scope"] == "layer" and (row["heads"] or 0) > 1]
    outcomes: list[tuple[Verdict, str]] = []
    for group in groups(layers, None):
        by_backend = {row["backend"]: row for row in group.rows}
        loop, fused = by_backend.get(LOOP), by_backend.get(FUSED)
        ratio = time_ratio(loop, fused) if loop and fused else None
        if ratio is None or loop is None or fused is None:
            continue
        errors = [row.get("error_ratio") for row in (loop, fused)]
        equal: Verdict = "inconclusive"
        if None not in errors:
            equal = (
                "supported"
                if max(error for error in errors if error is not None) <= ERROR_LIMIT
                else "refuted"
            )
        if any(type(holds) is bool for holds in studied):
            equal = "supported" if all(holds is True for holds in studied) else "refuted"
        said = (
            f"loop {ratio.text} at {group.label or 'the only problem'}; equal:"
            f" {'yes' if equal == 'supported' else 'not shown'}"
        )
        outcomes.append(
            (jointly([equal, by_interval(ratio.low, ratio.high, (1.0, float("inf")))]), said)
        )
    if not outcomes:
        return []
    return [
        Part(
            of=f"{FUSED} against {LOOP}",
            verdict=over_problems(verdict for verdict, _ in outcomes),
            numbers=outcomes[-1][1],
        )
    ]


def core_share(rows: Sequence[Row]) -> list[Part]:
    """C10: the core takes more than half of the layer's time at the longest N, and that is past the
    crossover of the FLOPs.
    """
    return [_core_part(backend, found, bottleneck=False) for backend, found in _cores(rows)]


def outside_share(rows: Sequence[Row]) -> list[Part]:
    """C16 without a study: all that is not core, joining and W_O among it. Small, it refutes the
    claim; large, it proves nothing.
    """
    return [_core_part(backend, found, bottleneck=True) for backend, found in _cores(rows)]


def _cores(rows: Sequence[Row]) -> list[tuple[str, tuple[Row, Ratio, bool]]]:
    """Per backend the longest problem with both scopes timed: the layer's row, core over layer, and
    whether N is past the crossing.
    """
    found: dict[str, tuple[Row, Ratio, bool]] = {}
    known = full_attention(rows)
    cores = {_key(row): row for row in known if row["scope"] == "core"}
    for row in known:
        core = cores.get(_key(row)) if row["scope"] == "layer" else None
        ratio = time_ratio(core, row) if core is not None else None
        best = found.get(row["backend"])
        if ratio is not None and (best is None or row["seq_len"] > best[0]["seq_len"]):
            found[row["backend"]] = (
                row,
                ratio,
                row["work_flops"] > 2 * (row["work_flops"] - (core or row)["work_flops"]),
            )
    return list(found.items())


def _key(row: Row) -> tuple[Any, ...]:
    return row["backend"], *(value for axis, value in problem(row).items() if axis != "scope")


def _core_part(backend: str, found: tuple[Row, Ratio, bool], *, bottleneck: bool) -> Part:
    row, ratio, past = found
    verdict = by_interval(ratio.low, ratio.high, (HALF, float("inf"))) if past else "inconclusive"
    if bottleneck:
        verdict = "refuted" if past and ratio.low > HALF else "inconclusive"
    share = (
        f"{max(0.0, 1 - ratio.value):.0%} of the layer is outside its core at N ="
        f" {count_text(row['seq_len'])}"
    )
    known = (
        f" ({max(0.0, 1 - ratio.high):.0%} to {max(0.0, 1 - ratio.low):.0%})"
        if isfinite(ratio.low)
        else ""
    )
    return Part(
        of=backend,
        verdict=verdict,
        numbers=f"{share}{known}" + ("" if past else ", which is not past the crossover"),
    )


def linear_growth(rows: Sequence[Row]) -> list[Part]:
    """C11: the exponent of time at the longest N, and no N^2 in the bytes; a stride of sqrt(N)
    makes it 1.5.
    """
    parts = []
    for backend in backends(rows):
        base = backend.partition(":")[0]
        if base not in (*LINEAR, STRIDED):
            continue
        wanted = STRIDED_EXPONENT if base == STRIDED else 1.0
        outcomes = []
        for group, found in growths_of(rows, backend):
            exponent = _last_exponent(found, by_slope=base == STRIDED)
            verdicts = [_exponent_verdict(exponent, wanted)]
            said = f"N^{interval_text(exponent)} in time at N = {count_text(found.lengths[-1])}"
            memory = bytes_over_n(group.rows, backend) if base != STRIDED else None
            if memory is not None and memory.exact:
                verdicts.append("supported" if memory.quadratic == 0 else "refuted")
                said += f", {'no' if memory.quadratic == 0 else 'some'} N² in bytes"
            outcomes.append((jointly(verdicts), said))
        if outcomes:
            parts.append(
                Part(
                    of=backend,
                    verdict=over_problems(verdict for verdict, _ in outcomes),
                    numbers=outcomes[0][1],
                )
            )
    return parts


def recurrent(rows: Sequence[Row]) -> list[Part]:
    """C12: linear in N, and fewer SMs at work than with attention on the same problem."""
    parts = []
    for backend in backends(rows):
        if backend.partition(":")[0] not in RECURRENT:
            continue
        exponents = [
            _last_exponent(found, by_slope=False) for _, found in growths_of(rows, backend)
        ]
        growth = over_problems(_exponent_verdict(exponent, 1.0) for exponent in exponents)
        beside = [
            pair for attention in (FUSED, "sdpa") for pair in _both_active(rows, backend, attention)
        ]
        at_work = over_problems(_less(ours, theirs) for ours, theirs in beside)
        if growth == at_work == "not run":
            continue
        said = (
            [f"N^{interval_text(exponents[-1])} in time"]
            if exponents
            else ["fewer than four lengths"]
        )
        said += [_active_text(*beside[-1])] if beside else ["no counters of a GPU"]
        parts.append(Part(of=backend, verdict=jointly([growth, at_work]), numbers=", ".join(said)))
    return parts


def better_used(rows: Sequence[Row]) -> list[Part]:
    """C13: SMs active with the fused layer and with the loop, by performance counters only."""
    pairs = _both_active(rows, LOOP, FUSED)
    if not pairs:
        return []
    verdict = over_problems(_less(loop, fused) for loop, fused in pairs)
    return [
        Part(
            of=f"{FUSED} against {LOOP}",
            verdict=verdict,
            numbers=f"{_active_text(*pairs[-1])}, {len(pairs)} compared",
        )
    ]


# ---- helpers -------------------------------------------------------------------------------------


def full_attention(rows: Sequence[Row]) -> list[Row]:
    """Without the backends that compute something else, of which the claims on quadratic growth do
    not speak.
    """
    others = (*LINEAR, STRIDED, *RECURRENT)
    return [row for row in rows if row["backend"].partition(":")[0] not in others]


def interval_text(found: Interval) -> str:
    """`1.93 (1.90 to 1.97)`; a bound that is not finite says so in words."""
    if not isfinite(found.low):
        return number_text(found.value)
    high = number_text(found.high) if isfinite(found.high) else "no end"
    return f"{number_text(found.value)} ({number_text(found.low)} to {high})"


def _last_exponent(found: Growth, *, by_slope: bool) -> Interval:
    """At the longest N by the formula; as measured over the last three lengths where that is
    wanted, or the formula does not hold.
    """
    measured = next((slope for slope in reversed(found.slopes) if slope is not None), None)
    return (
        measured
        if measured is not None and (by_slope or not found.describes)
        else found.exponents[-1]
    )


def _exponent_verdict(found: Interval, wanted: float) -> Verdict:
    """Below what is wanted the constant cost still hides the growth: a longer N may show more."""
    verdict = by_interval(
        found.low, found.high, (wanted - EXPONENT_MARGIN, wanted + EXPONENT_MARGIN)
    )
    return "inconclusive" if found.high < wanted else verdict


def _both_active(rows: Sequence[Row], one: str, other: str) -> list[tuple[Interval, Interval]]:
    """The share of active SMs of two backends, for every problem on which counters gave both."""
    counted = [
        row
        for row in rows
        if row.get("utilization_tier") == "gpm" and row["backend"] in (one, other)
    ]
    found = []
    for group in groups(counted, None):
        active = {
            row["backend"]: value
            for row in group.rows
            if (value := seen(row, "sm_active")) is not None
        }
        if one in active and other in active:
            found.append((active[one], active[other]))
    return found


def _less(ours: Interval, theirs: Interval) -> Verdict:
    """The intervals lie apart, ours below; without intervals nothing is known."""
    return (
        "supported"
        if ours.high < theirs.low
        else "refuted"
        if ours.low > theirs.high
        else "inconclusive"
    )


def _active_text(ours: Interval, theirs: Interval) -> str:
    return f"SMs active {ours.value:.0%} beside {theirs.value:.0%}"
