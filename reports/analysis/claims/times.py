"""The claims that ratios of times answer: C3c, C4, C10, C14, C16 and Q11.

A ratio of two times decides nothing while other work disturbs most blocks of one of them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Any

from ....harness.rows.findings import ProjectionEquality
from ...contrasts import against_one_head, share_width
from ...data.exactness import is_exact
from ...data.row_groups import AXES, Row, backends, groups
from ...formatting import count_text, number_text
from ...ratio import Ratio, disturbed, time_ratio
from ...subjects.correctness import ALLOWED_RATIO
from ...words import DISTURBED, Word
from .claim_verdict import (
    EQUAL,
    ClaimVerdict,
    Evidence,
    above,
    agreed,
    below,
    by_interval,
    jointly,
)
from .counts import HEADS
from .growth import full_attention
from .statement import Measured, claim
from .studies import share_of_output

LOOP, FUSED = "naive", "fused"
HALF = 0.5  # a part of a layer that takes more of its time is a bottleneck
GRU_FLOPS = 12  # per token and d²: three gates of two matrices
ANSWERS: dict[ClaimVerdict, str] = {
    "supported": "yes",
    "refuted": "no",
    "inconclusive": "undecided",
}
"""Whether two times are the same."""
SAME_TIME: dict[Word, ClaimVerdict] = {
    "same": "supported",
    "more": "refuted",
    "less": "refuted",
    "undecided": "inconclusive",
}


def of_ratio(of: str, ratio: Ratio, verdict: ClaimVerdict, text: str) -> Evidence:
    if ratio.disturbed:
        return Evidence(of, "inconclusive", text + DISTURBED)
    return Evidence(of, verdict, text)


# ---- heads ---------------------------------------------------------------------------------------


def _counted(evidence: Sequence[Evidence]) -> str:
    """How often the times are the same, and the first evidence of a different one."""
    counts = Counter(one.verdict for one in evidence)
    wanted = "refuted" if counts["refuted"] else agreed(counts)
    shown = next(one.numbers for one in evidence if one.verdict == wanted)
    texts = [
        f"{answer} in {counts[verdict]}" for verdict, answer in ANSWERS.items() if counts[verdict]
    ]
    return f"same time: {', '.join(texts)} of {len(evidence)}; {shown}"


@claim(
    "C3c",
    "... and the time of one head.",
    tested=(
        "equivalence test within 5 % (two one-sided tests on paired ratios), for every h and"
        " problem"
    ),
    needs=HEADS,
    numbers=_counted,
)
def time_of_heads(run: Measured) -> Iterator[Evidence]:
    for group, costs in against_one_head(run.rows):
        for cost in costs if share_width(group) else ():
            if (found := cost.same_time) is not None:
                text = f"h = {cost.heads} at {group.at}: {found.text}"
                verdict = SAME_TIME[found.word]
                if disturbed(cost.row, cost.base):
                    verdict = "inconclusive"
                    text += "" if found.noise_shown else DISTURBED
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
        by_backend = {row["backend"]: row for row in group.rows}
        loop, fused = by_backend.get(LOOP), by_backend.get(FUSED)
        ratio = time_ratio(loop, fused) if loop and fused else None
        if ratio is None or loop is None or fused is None:
            continue
        errors = [row.get("error_ratio") for row in (loop, fused)]
        known = [error for error in errors if error is not None]
        equal: ClaimVerdict = "inconclusive"
        if studied:
            equal = "supported" if all(studied) else "refuted"
        elif len(known) == 2:
            equal = "supported" if max(known) <= ALLOWED_RATIO else "refuted"
        said = {"supported": "yes", "refuted": "no"}.get(equal, "not shown")
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
    for backend in backends(run.rows):
        for whole, pruned in _pruned([row for row in run.rows if row["backend"] == backend]):
            share = pruned["heads"] / whole["heads"]
            left = f"{pruned['heads']} of {whole['heads']} heads"
            left += f" at N = {count_text(whole['seq_len'])}"
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
    same: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row["scope"] == "layer" and row["heads"] and row["kv_heads"] == row["heads"]:
            key = tuple(row.get(axis) for axis in AXES if axis not in ("heads", "kv_heads"))
            same.setdefault(key, []).append(row)
    for layers in same.values():
        whole = max(layers, key=lambda row: row["heads"])
        yield from ((whole, row) for row in layers if row["heads"] < whole["heads"])


def _bytes(row: Row) -> int | None:
    """With what is kept between calls; the peak alone in rows that do not know it."""
    needed: int | None = row.get("needed_bytes")
    return row.get("peak_bytes") if needed is None else needed


# ---- parts of a layer ----------------------------------------------------------------------------

BOTH_SCOPES = "scope: [core, layer], N up to several times 2 d_model"


@claim(
    "C10",
    "For long sequences the quadratic part dominates the projections.",
    tested=(
        "core over layer, the same problem in both scopes: above one half at the longest N, past"
        " the crossover of the FLOPs"
    ),
    needs=BOTH_SCOPES,
)
def core_share(run: Measured) -> Iterator[Evidence]:
    yield from _shares(run.rows, lambda share: above(share.low, share.high, HALF))


@claim(
    "C16",
    "Joining the heads and the output projection become a bottleneck.",
    tested=(
        "share of a layer's time outside its core, which holds both, at the longest N: below one"
        " half refutes it"
    ),
    needs=f"{BOTH_SCOPES}; or a study output_share",
)
def output_share(run: Measured) -> Iterator[Evidence]:
    """Without a study, by all that is outside the core: a small share refutes the claim, a large
    one proves nothing.
    """
    studied = list(share_of_output(run, HALF))
    yield from studied or _shares(
        run.rows, lambda share: "refuted" if share.low > HALF else "inconclusive"
    )


def _shares(rows: Sequence[Row], judge: Callable[[Ratio], ClaimVerdict]) -> Iterator[Evidence]:
    """Of every backend and problem, at the longest N at which both scopes were timed."""
    longest: dict[tuple[Any, ...], tuple[int, Evidence]] = {}
    for group in groups(full_attention(rows), "scope"):
        rest = tuple(value for axis, value in group.problem.items() if axis != "seq_len")
        for backend in backends(group.rows):
            by_scope = {row["scope"]: row for row in group.rows if row["backend"] == backend}
            core, layer = by_scope.get("core"), by_scope.get("layer")
            share = time_ratio(core, layer) if core and layer else None
            if core is None or layer is None or share is None:
                continue
            if layer["seq_len"] > longest.get((backend, *rest), (0,))[0]:
                past = layer["work_flops"] > 2 * (layer["work_flops"] - core["work_flops"])
                verdict = judge(share) if past else "inconclusive"
                text = _share_text(share, group.at) + (
                    "" if past else ", which is not past the crossover"
                )
                longest[backend, *rest] = (
                    layer["seq_len"],
                    of_ratio(backend, share, verdict, text),
                )
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
    times: list[Evidence] = []  # after all FLOPs
    for group in groups([row for row in run.every if row["scope"] == "layer"], None):
        of, n = group.problem, group.problem["seq_len"]
        gru = next((row for row in group.rows if row["backend"] == "rnn"), None)
        if gru is None or not n or n >= of["d_model"]:
            continue
        at = f"at N = {n:.0f}, d = {of['d_model']:.0f}"
        if of["passes"] == "forward" and gru.get("work_flops"):
            needed = GRU_FLOPS * of["batch"] * n * of["d_model"] ** 2 / gru["work_flops"]
            verdict: ClaimVerdict = "supported" if needed < 1 else "refuted"
            text = f"{number_text(needed)} times the FLOPs of attention {at}"
            yield Evidence("FLOPs of a GRU", verdict, text)
        for row in group.rows:
            taken = time_ratio(gru, row) if row is not gru and is_exact(row) else None
            if taken is not None:
                name = f"time of a GRU against {row['backend']}"
                text = f"{taken.text} the time of {row['backend']} {at}"
                times.append(of_ratio(name, taken, below(taken.low, taken.high, 1.0), text))
    yield from times
