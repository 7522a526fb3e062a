"""The claims that ratios of times answer, C3c, C4, C10, C14, C20, C21 and Q11, and shares of
active SMs: C13.
"""

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Any

from ...harness.rows.findings import ProjectionEquality, ThreadGain
from ..contrasts import against_one_head, contrasts, share_width
from ..data.exactness import RECURRENT, is_exact
from ..data.processor_time import disturbed
from ..data.row_groups import AXES, Group, Row, backends, by, family, groups
from ..formatting import beyond_text, count_text, number_text, times_text
from ..ratio import Ratio, time_ratio
from ..subjects._windows import observed
from ..subjects.correctness import ALLOWED_RATIO
from ..subjects.recurrence import cell, flops
from ..words import DISTURBED, Word
from .counts import HEADS
from .statement import Measured, claim
from .studies import extended
from .verdict import (
    EQUAL,
    ClaimVerdict,
    Evidence,
    above,
    below,
    by_interval,
    exactly,
    jointly,
    longer,
    longer_text,
    needed,
    of_ratio,
)

LOOP, FUSED = "naive", "fused"
COSTS = ("time", "bytes")
PAST_CROSSING = 4  # times the N at which FLOPs cross: there four fifths of them are in N²
HALF = 0.5  # a part of a layer that takes more of its time is a bottleneck
SAME_TIME: dict[Word, ClaimVerdict] = {"same": "supported", "not decided": "not decided"}


def pair(rows: Sequence[Row], axis: str, one: str, other: str) -> tuple[Row, Row] | None:
    """Two rows of one problem that differ in this, if both are there."""
    found = {row[axis]: row for row in rows}
    return (found[one], found[other]) if one in found and other in found else None


# ---- heads ---------------------------------------------------------------------------------------


@claim(
    "C3c",
    "... and the time of one head.",
    tested=(
        "equivalence test within 5 % (two one-sided tests on paired ratios), for every h and"
        " problem"
    ),
    needs=HEADS,
)
def time_of_heads(run: Measured) -> Iterator[Evidence]:
    for group, costs in against_one_head(run.rows):
        for cost in costs if share_width(group) else ():
            if (found := cost.time) is not None:
                text = f"h = {cost.heads} at {group.at}: {found.explained}"
                verdict = SAME_TIME.get(found.word, "refuted")
                if not cost.of_heads:
                    verdict, text = "not decided", f"{text}; {cost.kernels}"
                elif disturbed(cost.row, cost.base):
                    verdict = "not decided"
                    text += "" if found.why_not_decided else DISTURBED
                yield Evidence(cost.backend, verdict, text)


@claim(
    "C4",
    "One projection for all heads gives what h projections give, and is faster.",
    tested=(
        "both pass the check against float64; paired ratio of naive to fused in scope layer above 1"
        " (the same within 5 % refutes it)"
    ),
    needs="naive and fused, scope: [layer], more than one head",
)
def one_projection(run: Measured) -> Iterator[Evidence]:
    """Both passed the correctness check, so they are equal; a study projection_equality tests it
    more strictly.
    """
    studied = [one.holds for one in run.of(ProjectionEquality)]
    layers = [row for row in run.rows if row["scope"] == "layer" and (row["heads"] or 0) > 1]
    for group in groups(layers, None):
        both = pair(group.rows, "backend", LOOP, FUSED)
        if both is None or (ratio := time_ratio(*both)) is None:
            continue
        errors = [row.get("error_ratio") for row in both]
        held = studied or [error <= ALLOWED_RATIO for error in errors if error is not None]
        known = bool(studied) or None not in errors
        equal: ClaimVerdict = exactly(all(held)) if known else "not decided"
        said = ("yes" if all(held) else "no") if known else "not shown"
        bounds = ratio.tested or (ratio.low, ratio.high)
        verdict = longer(*bounds)
        faster = of_ratio("", ratio, verdict, longer_text(verdict, ratio.value, *bounds))
        text = f"loop {ratio.text} at {group.at}; equal: {said}{faster.numbers}"
        yield Evidence(f"{FUSED} against {LOOP}", jointly([equal, faster.verdict]), text)


@claim(
    "C14",
    "Removing heads saves cost in proportion. (What it does to quality: Q3 for single heads, Q19"
    " for two fifths of them.)",
    tested="time and bytes of a layer with k of h heads left, over k/h, within 5 %",
    needs="scope: [layer], d_k and d_v fixed, several heads with contrast: [heads]",
    halves=COSTS,
)
def head_pruning(run: Measured) -> Iterator[Evidence]:
    """Layers of k heads of one width against the layer of all h; the share is 1 in proportion."""
    for whole, pruned in _pruned(run.rows):
        share = pruned["heads"] / whole["heads"]
        left = f"{pruned['heads']} of {whole['heads']} heads at N = {count_text(whole['seq_len'])}"
        yield from _in_proportion(pruned, whole, share, left)


def _pruned(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Layers that differ only in their heads, each after the one that has most.

    Heads whose width follows from their number do not count: pruning keeps the width of the others.
    """
    rest = [axis for axis in AXES if axis not in ("heads", "kv_heads")]
    layers = (row for row in rows if row["scope"] == "layer" and row["heads"])
    own = (row for row in layers if row["kv_heads"] == row["heads"])
    for same in by(own, lambda row: (row["backend"], *map(row.get, rest))).values():
        whole = max(same, key=lambda row: row["heads"])
        yield from ((whole, row) for row in same if row["heads"] < whole["heads"])


@claim(
    "C20",
    "Cost grows in proportion to the batch: a larger one saves nothing per token.",
    tested="time and bytes of a batch over those of the smallest, over their sizes, within 5 %",
    needs="batch: [1, ...] with contrast: [batch]",
    halves=COSTS,
)
def of_batch(run: Measured) -> Iterator[Evidence]:
    for group, costs in contrasts(run.rows, "batch"):
        for cost in costs:
            share = cost.row["batch"] / cost.base["batch"]
            if share > 1:
                text = f"batch {cost.row['batch']} over {cost.base['batch']} at {group.at}"
                yield from _in_proportion(cost.row, cost.base, share, text)


def _in_proportion(row: Row, base: Row, share: float, what: str) -> Iterator[Evidence]:
    """Time and bytes against a base, of which this is such a share or multiple."""
    claimed = f" ({number_text(share)} would be in proportion)"
    if ratio := time_ratio(row, base):
        verdict = by_interval(ratio.low / share, ratio.high / share, EQUAL)
        text = f"{what}: time {ratio.text}{claimed}"
        yield of_ratio(row["backend"], ratio, verdict, text)._replace(half=COSTS[0])
    if (ours := _bytes(row)) and (theirs := _bytes(base)):
        size = ours / theirs
        verdict = by_interval(size / share, size / share, EQUAL)
        text = f"{what}: bytes {number_text(size)} times{claimed}"
        yield Evidence(row["backend"], verdict, text, COSTS[1])


def _bytes(row: Row) -> int | None:
    """With what is kept between calls; the peak alone in rows that do not know it."""
    needed: int | None = row.get("needed_bytes")
    return row.get("peak_bytes") if needed is None else needed


# ---- parts of a layer ----------------------------------------------------------------------------


@claim(
    "C10",
    "For long sequences the quadratic part dominates the projections.",
    tested=(
        "core over layer, the same problem in both scopes: above one half at the longest N, if that"
        " is 4 times the N at which FLOPs cross"
    ),
    needs="scope: [core, layer], N up to 8 d_model",
)
def core_share(run: Measured) -> Iterator[Evidence]:
    """Of every backend and problem, at the longest N at which both scopes were timed."""
    longest: dict[tuple[Any, ...], tuple[int, Evidence]] = {}
    for group in groups(run.quadratic, "scope"):
        rest = tuple(value for axis, value in group.problem.items() if axis != "seq_len")
        for backend in backends(group.rows):
            mine = [row for row in group.rows if row["backend"] == backend]
            both = pair(mine, "scope", "core", "layer")
            if both is None or (share := time_ratio(*both)) is None:
                continue
            core, layer = both
            if layer["seq_len"] > longest.get((backend, *rest), (0,))[0]:
                longest[backend, *rest] = (layer["seq_len"], _dominated(share, core, layer, group))
    yield from (evidence for _, evidence in longest.values())


def _dominated(share: Ratio, core: Row, layer: Row, group: Group) -> Evidence:
    """FLOPs in N² over those in N are N over the N at which they cross."""
    text, outside = _share_text(share, group.at), layer["work_flops"] - core["work_flops"]
    if core["work_flops"] < PAST_CROSSING * outside:
        text += f", which is not {PAST_CROSSING} times the N at which FLOPs cross"
        return Evidence(layer["backend"], "not run", text)
    verdict = above(share.low, share.high, HALF)
    text += needed(verdict, (share.value, share.low, share.high), (HALF,))
    return of_ratio(layer["backend"], share, verdict, text)


def _share_text(share: Ratio, at: str) -> str:
    outside, low, high = (max(0.0, 1 - bound) for bound in (share.value, share.high, share.low))
    text = f"{100 * outside:.0f} % of the layer is outside its core at {at}"
    return text + (f" ({100 * low:.0f} to {100 * high:.0f} %)" if isfinite(share.low) else "")


# ---- other layers --------------------------------------------------------------------------------


def _for_short(
    judge: Callable[[float, float, float], ClaimVerdict],
) -> Callable[[Measured], Iterator[Evidence]]:
    """FLOPs and time of a recurrent layer over those of attention at N < d, by each cell."""

    def test(run: Measured) -> Iterator[Evidence]:
        for group in groups([row for row in run.every if row["scope"] == "layer"], None):
            d, n = group.problem["d_model"], group.problem["seq_len"]
            at = f"at N = {n:.0f}, d = {d:.0f}"
            for ours in (row for row in group.rows if family(row["backend"]) in RECURRENT):
                if not n or n >= d:
                    continue
                if (needed := flops(ours)) and ours.get("work_flops"):
                    times = needed / ours["work_flops"]
                    text = f"{number_text(times)} times the FLOPs of attention {at}"
                    yield Evidence(f"FLOPs, {cell(ours)}", judge(times, times, 1.0), text)
                for row in filter(is_exact, group.rows):
                    if (taken := time_ratio(ours, row)) is not None:
                        verdict = judge(taken.low, taken.high, 1.0)
                        text = f"{taken.text_to(row['backend'])} {at}"
                        of = f"time, {cell(ours)} against {row['backend']}"
                        yield of_ratio(of, taken, verdict, text)

    return test


Q11A, Q11B = (
    claim(
        name,
        statement,
        tested=(
            "FLOPs of the recurrent layer, 4 B N d² per gate, and its time, against an attention"
            " layer of the same width, with its projections, at N < d"
        ),
        needs="backend rnn and an exact one, scope: [layer], seq_len below d_model",
    )(_for_short(judge))
    for name, statement, judge in (
        ("Q11a", "Attention is cheaper than a recurrent layer for N < d.", above),
        ("Q11b", "... the reverse: the recurrent layer is the cheaper one for N < d.", below),
    )
)


# ---- use of the device ---------------------------------------------------------------------------


@claim(
    "C21",
    "A loop over heads cannot use the parallelism that all heads at once use.",
    tested=(
        "fused and naive with 1 thread and with all, in the same blocks: fused gains by threads,"
        " and gains more than naive"
    ),
    study=ThreadGain,
)
def loop_with_threads(run: Measured) -> Iterator[Evidence]:
    yield from less_gain(run, LOOP)


def less_gain(run: Measured, backend: str) -> Iterator[Evidence]:
    """Whether all heads at once gain by threads, and more than this backend."""
    found = run.of(ThreadGain)
    at_once = {one.seq_len: one for one in found if one.backend == FUSED}
    for one in found:
        if one.backend == backend and (fused := at_once.get(one.seq_len)):
            gains = longer(*extended(fused, fused.gain_low_ratio, fused.gain_high_ratio)[:2])
            low, high, allows = extended(one, one.behind_low_ratio, one.behind_high_ratio)
            text = f"{one.threads} threads make {FUSED} {number_text(fused.gain_ratio)} times as"
            text += f" fast, {backend} {number_text(one.gain_ratio)} times, at N = {one.seq_len}:"
            text += f" {times_text(one.behind_ratio, low, high)}{allows}"
            verdict = jointly([gains, longer(low, high)])
            text += longer_text(verdict, one.behind_ratio, low, high) if one.processes > 1 else ""
            yield Evidence(f"{FUSED} against {backend}", verdict, text)


@claim(
    "C13",
    "The fused layer uses the GPU better than the loop over heads.",
    tested="intervals of the share of active SMs do not overlap (performance counters only)",
    needs="naive and fused, measure: [latency, utilization], on a GPU with performance counters",
)
def better_used(run: Measured) -> Iterator[Evidence]:
    yield from fewer_active(run.rows, LOOP, FUSED)


def fewer_active(rows: Sequence[Row], one: str, other: str) -> Iterator[Evidence]:
    """Whether the first backend has fewer active SMs, for every problem with counters of both.

    By performance counters only: other sources of utilization do not know it.
    """
    counted = [row for row in rows if row.get("utilization_tier") == "gpm"]
    for group in groups(counted, None):
        both = pair(group.rows, "backend", one, other)
        ours, theirs = (observed(row, "sm_active_ratio") for row in both) if both else (None, None)
        if ours is None or theirs is None:
            continue
        verdict: ClaimVerdict = "supported" if ours.high < theirs.low else "not decided"
        used, more = (f"{100 * of.value:.0f} %{beyond_text(of.value)}" for of in (ours, theirs))
        yield Evidence(
            f"{other} against {one}",
            "refuted" if ours.low > theirs.high else verdict,
            f"SMs active {used} against {more}",
        )
