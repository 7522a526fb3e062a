"""Whether a recurrent layer is cheaper than attention where N < d: Q11, by FLOPs and time."""

from collections.abc import Sequence

from ...data.exactness import is_exact
from ...data.row_groups import Row, groups
from ...formatting import number_text
from ...ratio import time_ratio
from ...words import DISTURBED
from .claim_verdict import ClaimVerdict, Evidence, Part, below, part
from .statement import Statement

GRU_FLOPS = 12  # per token and d²: three gates of two matrices


def recurrent_for_short(rows: Sequence[Row]) -> list[Part]:
    """Q11: for N < d a GRU needs fewer FLOPs, and less time, than an attention layer."""
    flops: list[Evidence] = []
    times: dict[str, list[Evidence]] = {}
    for group in groups([row for row in rows if row["scope"] == "layer"], None):
        of = group.problem
        gru = next((row for row in group.rows if row["backend"] == "rnn"), None)
        if gru is None or not of["seq_len"] or of["seq_len"] >= of["d_model"]:
            continue
        n = of["seq_len"]
        at = f"N = {n:.0f}, d = {of['d_model']:.0f}"
        if of["passes"] == "forward" and gru.get("work_flops"):
            needed = GRU_FLOPS * of["batch"] * n * of["d_model"] ** 2
            verdict: ClaimVerdict = "supported" if needed < gru["work_flops"] else "refuted"
            ratio = number_text(needed / gru["work_flops"])
            flops.append((verdict, f"{ratio} times the FLOPs of attention at {at}"))
        for row in group.rows:
            taken = time_ratio(gru, row) if row is not gru and is_exact(row) else None
            if taken is not None:
                verdict = below(taken.low, taken.high, 1.0)
                verdict = "inconclusive" if taken.disturbed else verdict
                text = f"{taken.text} the time of {row['backend']} at {at}"
                text += DISTURBED if taken.disturbed else ""
                times.setdefault(row["backend"], []).append((verdict, text))
    parts = part("FLOPs of a GRU", flops)
    for backend, evidence in times.items():
        parts += part(f"time of a GRU against {backend}", evidence)
    return parts


CLAIMS: dict[str, Statement] = {
    "Q11": Statement(
        statement="A recurrent layer is cheaper than attention for N < d.",
        tested=(
            "FLOPs of a GRU, 12 B N d², and its time, against an attention layer of the same width"
            " at N < d"
        ),
        to_run="backend rnn and an exact one, scope: [layer], seq_len below d_model",
        test=lambda rows, _: recurrent_for_short(rows),
        of_inexact=True,
    ),
}
