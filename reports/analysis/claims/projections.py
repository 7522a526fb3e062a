"""Several projections as one product: C4 for all heads, Q15 for queries, keys and values.

C4 reads rows and the study projection_equality (holds: bool), Q15 the study joined_projections:
batch, seq_len, d_model, time_ratio with bounds.
"""

from collections.abc import Sequence
from typing import Any

from ...data.row_groups import Row, groups
from ...formatting import times_text
from ..errors import ALLOWED_RATIO
from ..ratio import DISTURBED, time_ratio
from .claim_verdict import ClaimVerdict, Evidence, Part, above, jointly, part
from .findings import extended, numbers, of_study
from .statement import Statement
from .times import FUSED, LOOP


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
        said = {"supported": "yes", "refuted": "no"}.get(equal, "not shown")
        noise = DISTURBED if ratio.disturbed else ""
        text = f"loop {ratio.text} at {group.at}{noise}; equal: {said}"
        faster = "inconclusive" if ratio.disturbed else above(ratio.low, ratio.high, 1.0)
        evidence.append((jointly([equal, faster]), text))
    return part(f"{FUSED} against {LOOP}", evidence)


def one_product(findings: Sequence[Any]) -> list[Part]:
    """Q15: three products take longer than one. A study measures in one process, so its interval is
    extended by what processes may differ.
    """
    parts = []
    for one in of_study(findings, "joined_projections"):
        known = numbers(
            one, "batch", "seq_len", "d_model", "time_ratio", "time_low_ratio", "time_high_ratio"
        )
        if known is None:
            continue
        batch, n, width, ratio, low, high = known
        low, high, allows = extended(one, low, high)
        verdict = above(low, high, 1.0)
        text = f"three take {times_text(ratio, low, high)} the time of one{allows}"
        of = f"batch {batch:.0f}, N = {n:.0f}, d = {width:.0f}"
        parts.append(Part(of=of, verdict=verdict, numbers=text))
    return parts


CLAIMS: dict[str, Statement] = {
    "C4": Statement(
        statement="One projection for all heads gives what h projections give, and is faster.",
        tested=(
            "both pass the check against float64; paired ratio of naive to fused in scope layer"
            " above 1"
        ),
        to_run="naive and fused, scope: [layer], more than one head",
        test=one_projection,
    ),
    "Q15": Statement(
        statement="One product for queries, keys and values is faster than three.",
        tested="paired ratio of times over batch and N, extended by what processes may differ",
        to_run="studies: [joined_projections]",
        test=lambda _, findings: one_product(findings),
        study="joined_projections",
    ),
}
