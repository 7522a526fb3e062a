"""The claims that ratios of times answer, C3c, C4, C10, C14 and Q11, and shares of active SMs:
C13.
"""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from ...harness.rows.findings import ProjectionEquality, by
from ..contrasts import against_one_head, share_width
from ..data.exactness import is_exact
from ..data.row_groups import AXES, Row, backends, groups
from ..formatting import beyond_text, count_text, number_text
from ..ratio import Ratio, disturbed, time_ratio
from ..subjects.correctness import ALLOWED_RATIO
from ..subjects.utilization import observed
from ..words import DISTURBED, Word
from .counts import HEADS
from .statement import Measured, claim
from .verdict import (
    EQUAL,
    ClaimVerdict,
    Evidence,
    above,
    below,
    by_interval,
    exactly,
    jointly,
    of_ratio,
)

LOOP, FUSED = "naive", "fused"
HALF = 0.5  # a part of a layer that takes more of its time is a bottleneck
GRU_FLOPS = 12  # per token and d²: three gates of two matrices
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
                if disturbed(cost.row, cost.base):
                    verdict = "not decided"
                    text += "" if found.why_not_decided else DISTURBED
                yield Evidence(cost.backend, verdict, text)


@claim(
    "C4",
    "One projection for all heads gives what h projections give, and is faster.",
    tested=(
        "both pass the check against float64; paired ratio of naive to fused in scope layer above 1"
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
        faster = of_ratio("", ratio, above(ratio.low, ratio.high, 1.0), "")
        text = f"loop {ratio.text} at {group.at}{faster.numbers}; equal: {said}"
        yield Evidence(f"{FUSED} against {LOOP}", jointly([equal, faster.verdict]), text)


@claim(
    "C14",
    "Removing heads saves cost in proportion. (What it does to quality: Q3 for single heads, Q19"
    " for half of them.)",
    tested="time and bytes of a layer with k of h heads left, over k/h, within 5 %",
    needs="scope: [layer], d_k and d_v fixed, several heads with contrast: [heads]",
)
def head_pruning(run: Measured) -> Iterator[Evidence]:
    """Layers of k heads of one width against the layer of all h; the share is 1 in proportion."""
    for whole, pruned in _pruned(run.rows):
        backend, share = whole["backend"], pruned["heads"] / whole["heads"]
        left = f"{pruned['heads']} of {whole['heads']} heads at N = {count_text(whole['seq_len'])}"
        claimed = f" ({number_text(share)} would be in proportion)"
        if ratio := time_ratio(pruned, whole):
            verdict = by_interval(ratio.low / share, ratio.high / share, EQUAL)
            text = f"{left}: {ratio.text} the time{claimed}"
            yield of_ratio(f"{backend}, time", ratio, verdict, text)
        if (left_bytes := _bytes(pruned)) and (all_bytes := _bytes(whole)):
            size = left_bytes / all_bytes
            verdict = by_interval(size / share, size / share, EQUAL)
            text = f"{left}: {number_text(size)} times the bytes{claimed}"
            yield Evidence(f"{backend}, bytes", verdict, text)


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


def _bytes(row: Row) -> int | None:
    """With what is kept between calls; the peak alone in rows that do not know it."""
    needed: int | None = row.get("needed_bytes")
    return row.get("peak_bytes") if needed is None else needed


# ---- parts of a layer ----------------------------------------------------------------------------


@claim(
    "C10",
    "For long sequences the quadratic part dominates the projections.",
    tested=(
        "core over layer, the same problem in both scopes: above one half at the longest N, past"
        " the crossover of the FLOPs"
    ),
    needs="scope: [core, layer], N up to several times 2 d_model",
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
                past = layer["work_flops"] > 2 * (layer["work_flops"] - core["work_flops"])
                text = _share_text(share, group.at)
                text += "" if past else ", which is not past the crossover"
                verdict = above(share.low, share.high, HALF) if past else "not decided"
                found = of_ratio(backend, share, verdict, text)
                longest[backend, *rest] = (layer["seq_len"], found)
    yield from (evidence for _, evidence in longest.values())


def _share_text(share: Ratio, at: str) -> str:
    outside, low, high = (max(0.0, 1 - bound) for bound in (share.value, share.high, share.low))
    text = f"{100 * outside:.0f} % of the layer is outside its core at {at}"
    return text + (f" ({100 * low:.0f} to {100 * high:.0f} %)" if isfinite(share.low) else "")


# ---- other layers --------------------------------------------------------------------------------


@claim(
    "Q11",
    "A recurrent layer is cheaper than attention for N < d.",
    tested=(
        "FLOPs of a GRU, 12 B N d², and its time, against an attention layer of the same width at"
        " N < d"
    ),
    needs="backend rnn and an exact one, scope: [layer], seq_len below d_model",
)
def recurrent_for_short(run: Measured) -> Iterator[Evidence]:
    for group in groups([row for row in run.every if row["scope"] == "layer"], None):
        of, n = group.problem, group.problem["seq_len"]
        gru = next((row for row in group.rows if row["backend"] == "rnn"), None)
        if gru is None or not n or n >= of["d_model"]:
            continue
        at = f"at N = {n:.0f}, d = {of['d_model']:.0f}"
        if of["passes"] == "forward" and gru.get("work_flops"):
            needed = GRU_FLOPS * of["batch"] * n * of["d_model"] ** 2 / gru["work_flops"]
            text = f"{number_text(needed)} times the FLOPs of attention {at}"
            yield Evidence("FLOPs of a GRU", exactly(needed < 1), text)
        for row in group.rows:
            if row is not gru and is_exact(row) and (taken := time_ratio(gru, row)) is not None:
                name = f"time of a GRU against {row['backend']}"
                text = f"{taken.text} the time of {row['backend']} {at}"
                yield of_ratio(name, taken, below(taken.low, taken.high, 1.0), text)


# ---- use of a GPU --------------------------------------------------------------------------------


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
        ours, theirs = (observed(row, "sm_active") for row in both) if both else (None, None)
        if ours is None or theirs is None:
            continue
        verdict: ClaimVerdict = "supported" if ours.high < theirs.low else "not decided"
        used, more = (f"{100 * of.value:.0f} %{beyond_text(of.value)}" for of in (ours, theirs))
        yield Evidence(
            f"{other} against {one}",
            "refuted" if ours.low > theirs.high else verdict,
            f"SMs active {used} against {more}",
        )
