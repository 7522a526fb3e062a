"""What shares of a layer's time its core and its output have: C10 and C16.

C16 also reads the study output_share, of joining the heads and W_O: backend, seq_len,
share_ratio, share_low_ratio, share_high_ratio, contended_blocks and blocks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ....harness.rows.findings import OutputShare, findings_of
from ...data.row_groups import Row, backends, groups
from ...formatting import beyond_text
from ..ratio import DISTURBED, Ratio, time_ratio
from .claim_verdict import ClaimVerdict, Evidence, Part, above, part
from .findings import disturbed, extended
from .statement import Statement
from .times import full_attention

HALF = 0.5  # a part of a layer that takes more of its time is a bottleneck
_BOTH_SCOPES = "scope: [core, layer], N up to several times 2 d_model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A layer's time on one problem. `share`: core over layer; `past`: by FLOPs above one half."""

    at: str
    seq_len: int
    share: Ratio
    past: bool


def core_share(rows: Sequence[Row]) -> list[Part]:
    """C10: the core takes more than half of the layer's time at the longest N.

    That N is past the crossover of the FLOPs.
    """
    return _parts(rows, lambda share: above(share.low, share.high, HALF))


def outside_share(rows: Sequence[Row]) -> list[Part]:
    """C16 without a study: everything outside the core, which includes joining and W_O.

    A small share refutes the claim; a large one proves nothing.
    """
    return _parts(rows, lambda share: "refuted" if share.low > HALF else "inconclusive")


def _parts(rows: Sequence[Row], judge: Callable[[Ratio], ClaimVerdict]) -> list[Part]:
    """A part per backend, of all its problems, each at its longest N."""
    parts = []
    for backend, splits in _splits(rows).items():
        evidence: list[Evidence] = [
            (
                judge(one.share) if one.past and not one.share.disturbed else "inconclusive",
                _text(one),
            )
            for one in splits
        ]
        parts += part(backend, evidence)
    return parts


def _splits(rows: Sequence[Row]) -> dict[str, list[Split]]:
    """Per backend, every problem at the longest N at which both scopes were timed."""
    found: dict[str, dict[tuple[Any, ...], Split]] = {}
    for group in groups(full_attention(rows), "scope"):
        rest = tuple(value for axis, value in group.problem.items() if axis != "seq_len")
        for backend in backends(group.rows):
            by_scope = {row["scope"]: row for row in group.rows if row["backend"] == backend}
            core, layer = by_scope.get("core"), by_scope.get("layer")
            ratio = time_ratio(core, layer) if core and layer else None
            if core is None or layer is None or ratio is None:
                continue
            mine, n = found.setdefault(backend, {}), layer["seq_len"]
            if rest not in mine or n > mine[rest].seq_len:
                past = layer["work_flops"] > 2 * (layer["work_flops"] - core["work_flops"])
                mine[rest] = Split(at=group.at, seq_len=n, share=ratio, past=past)
    return {backend: list(splits.values()) for backend, splits in found.items()}


def _text(one: Split) -> str:
    share = one.share
    outside, low, high = (max(0.0, 1 - bound) for bound in (share.value, share.high, share.low))
    text = f"{100 * outside:.0f} % of the layer is outside its core at {one.at}"
    text += f" ({100 * low:.0f} to {100 * high:.0f} %)" if isfinite(share.low) else ""
    text += "" if one.past else ", which is not past the crossover"
    return text + (DISTURBED if share.disturbed else "")


def output_share(findings: Sequence[Any]) -> list[Part]:
    """C16: the share of joining and W_O at the longest N.

    A study measures in one process, so its interval is extended by what processes may differ.
    While other work disturbs most blocks, a share decides nothing.
    """
    longest: dict[str, OutputShare] = {}
    for one in findings_of(OutputShare, findings):
        if one.backend not in longest or one.seq_len > longest[one.backend].seq_len:
            longest[one.backend] = one
    parts = []
    for of, one in longest.items():
        low, high, allows = extended(one, one.share_low_ratio, one.share_high_ratio)
        low, high, share = min(1.0, low), min(1.0, high), one.share_ratio
        text = (
            f"{100 * share:.0f} %{beyond_text(share)} of the layer's time at N = {one.seq_len}"
            f" ({100 * low:.0f} to {100 * high:.0f} %){allows}"
        )
        verdict = "inconclusive" if disturbed(one) else above(low, high, HALF)
        parts.append(Part(of=of, verdict=verdict, numbers=text))
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
