"""Several projections as one product: C4 for all heads, Q15 for queries, keys and values.

C4 reads rows and the study projection_equality, Q15 the study joined_projections.
"""

from collections.abc import Sequence
from typing import Any

from ....harness.rows.findings import JoinedProjections, ProjectionEquality, findings_of
from ...data.row_groups import Row, groups
from ...formatting import times_text
from ..errors import ALLOWED_RATIO
from ..ratio import DISTURBED, time_ratio
from .claim_verdict import ClaimVerdict, Evidence, Part, above, jointly, part
from .findings import extended
from .statement import Statement
from .times import FUSED, LOOP


def one_projection(rows: Sequence[Row], findings: Sequence[Any]) -> list[Part]:
    """C4: the loop's time over the fused layer's, on problems where both results are correct.

    Both passed the correctness check, so they are equal. A study projection_equality (holds: bool)
    tests the equality more strictly.
    """
    studied = [one.holds for one in findings_of(ProjectionEquality, findings)]
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
        if studied:
            equal = "supported" if all(studied) else "refuted"
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
    for one in findings_of(JoinedProjections, findings):
        low, high, allows = extended(one, one.time_low_ratio, one.time_high_ratio)
        verdict = above(low, high, 1.0)
        text = f"three take {times_text(one.time_ratio, low, high)} the time of one{allows}"
        of = f"batch {one.batch}, N = {one.seq_len}, d = {one.d_model}"
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
