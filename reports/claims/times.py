"""The claims that ratios of times answer: C3c, C4, C10, C14 and C20."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from ...harness.rows.findings import ProjectionEquality
from ..contrasts import against_one_head, contrasts, share_width
from ..data.processor_time import disturbed
from ..data.row_groups import AXES, Group, Row, backends, by, groups
from ..formatting import count_text, number_text
from ..ratio import Ratio, time_ratio
from ..subjects.correctness import ALLOWED_RATIO
from ..words import DISTURBED, Word
from .counts import HEADS
from .statement import Measured, claim
from .verdict import (
    EQUAL,
    ClaimVerdict,
    Evidence,
    above,
    by_interval,
    exactly,
    jointly,
    longer,
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
        faster = of_ratio("", ratio, verdict, "")
        text = f"loop {ratio.text} at {group.at}; equal: {said}{faster.numbers}"
        yield Evidence(f"{FUSED} against {LOOP}", jointly([equal, faster.verdict]), text)


@claim(
    "C14",
    "Removing heads saves cost in proportion.",
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
    return of_ratio(layer["backend"], share, verdict, text)


def _share_text(share: Ratio, at: str) -> str:
    outside, low, high = (max(0.0, 1 - bound) for bound in (share.value, share.high, share.low))
    text = f"{100 * outside:.0f} % of the layer is outside its core at {at}"
    return text + (f" ({100 * low:.0f} to {100 * high:.0f} %)" if isfinite(share.low) else "")
