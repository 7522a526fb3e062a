"""What shares of a layer's time its core and its output have: C10 and C16.

C16 also reads the study output_share, of joining the heads and W_O: backend, seq_len,
share_ratio, share_low_ratio, share_high_ratio.
"""

from collections.abc import Sequence
from math import inf, isfinite
from typing import Any

from ...data.noise_floor import ASSUMED_RATIO
from ...data.row_groups import Row, problem
from ...formatting import beyond_text, count_text
from ..ratio import Ratio, time_ratio
from .claim_verdict import DISTURBED, ClaimVerdict, Part, by_interval
from .findings import ALLOWS, numbers, of_study
from .statement import Statement
from .times import full_attention

HALF = 0.5  # a part of a layer that takes more of its time is a bottleneck
_BOTH_SCOPES = "scope: [core, layer], N up to several times 2 d_model"


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
    n = count_text(row["seq_len"])
    text = f"{100 * outside:.0f} % of the layer is outside its core at N = {n}"
    text += f" ({100 * low:.0f} to {100 * high:.0f} %)" if isfinite(ratio.low) else ""
    text += "" if past else ", which is not past the crossover"
    text += DISTURBED if ratio.disturbed else ""
    return Part(of=backend, verdict=verdict, numbers=text)


def output_share(findings: Sequence[Any]) -> list[Part]:
    """C16: the share of joining and W_O at the longest N.

    A study measures in one process, so its interval is extended by what processes may differ.
    """
    names = ("seq_len", "share_ratio", "share_low_ratio", "share_high_ratio")
    longest: dict[str, list[float]] = {}
    for one in of_study(findings, "output_share"):
        known, of = numbers(one, *names), str(one.get("backend"))
        if known and (of not in longest or known[0] > longest[of][0]):
            longest[of] = known
    parts = []
    for of, (n, share, own_low, own_high) in longest.items():
        low, high = own_low / (1 + ASSUMED_RATIO), min(1.0, own_high * (1 + ASSUMED_RATIO))
        text = (
            f"{100 * share:.0f} %{beyond_text(share)} of the layer's time at N = {n:.0f}"
            f" ({100 * low:.0f} to {100 * high:.0f} %){ALLOWS}"
        )
        parts.append(Part(of=of, verdict=by_interval(low, high, (HALF, 1.0)), numbers=text))
    return parts


CLAIMS: dict[str, Statement] = {
    "C10": Statement(
        statement="For long sequences the quadratic part dominates the projections.",
        tested=(
            "core over layer, the same problem in both scopes: above one half at the longest N,"
            " past the crossover of the FLOPs"
        ),
        to_run=_BOTH_SCOPES,
        test=lambda rows, _: core_share(rows),
    ),
    "C16": Statement(
        statement="Joining the heads and the output projection become a bottleneck.",
        tested=(
            "share of a layer's time outside its core, which holds both, at the longest N: below"
            " one half refutes it"
        ),
        to_run=f"{_BOTH_SCOPES}; or a study output_share",
        test=lambda rows, findings: output_share(findings) or outside_share(rows),
    ),
}
