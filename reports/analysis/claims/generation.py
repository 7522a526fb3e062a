"""Q16: what a cache of keys and values saves, from the study generation."""

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any

from ....harness.rows.findings import Generated
from ...formatting import count_text, number_text, times_text
from ..generation import complaints, flops_exponent, generated, timed
from .claim_verdict import ClaimVerdict, Part, above, jointly
from .findings import extended
from .statement import Statement

RATIO = "full_over_cached_total"


def cache_saves(findings: Sequence[Any]) -> list[Part]:
    """FLOPs of all steps, an exact count, and their time on each backend, at the most tokens.

    A backend whose cached steps are not the full pass saves nothing that can be compared.
    """
    found = generated({"studies": findings})
    if not found:
        return []
    wrong = complaints(found)
    parts = [_flops([one for one in found if one.backend == found[0].backend])]
    parts += [_time(backend, some) for backend, some in timed(found).items()]
    return [
        *parts,
        *(Part(of=of, verdict="inconclusive", numbers=why) for of, why in wrong.items()),
    ]


def _flops(some: Sequence[Generated]) -> Part:
    """Without a cache T steps need more, and ever more so. `some`: of one backend."""
    last = max(some, key=lambda one: one.tokens)
    ratio = last.full_total_flops / last.cached_total_flops
    full, cached = (flops_exponent(some, way) for way in ("full", "cached"))
    verdicts: list[ClaimVerdict] = ["supported" if ratio > 1 else "refuted"]
    text = f"without a cache {number_text(ratio)} times those with it for {_tokens(last)} tokens"
    if full is not None and cached is not None:
        verdicts.append("supported" if full > cached else "refuted")
        text += f"; they grow as T^{full:.1f}, with it as T^{cached:.1f}"
    return Part(of="FLOPs", verdict=jointly(verdicts), numbers=text)


def _time(backend: str, some: Sequence[Generated]) -> Part:
    """The study measures in one process, so its interval is extended by what processes may differ.

    `some`: by tokens.
    """
    last = some[-1]
    low, high, allows = _extended(last)
    times = times_text(last[f"{RATIO}_ratio"], low, high)
    text = f"{_tokens(last)} tokens without a cache take {times} the time of those with it"
    text += allows if isfinite(low) else ""
    slower = [one for one in some if _extended(one)[1] < 1]
    if slower:
        text += f", but {_tokens(slower[-1])} tokens take less"
    return Part(of=f"time, {backend}", verdict=above(low, high, 1.0), numbers=text)


def _extended(one: Generated) -> tuple[float, float, str]:
    """The bounds of the ratio of times, NaN without an interval, and what they allow for."""
    ends = (one[f"{RATIO}_{end}_ratio"] for end in ("low", "high"))
    low, high = (nan if bound is None else float(bound) for bound in ends)
    return extended(one, low, high)


def _tokens(one: Generated) -> str:
    return count_text(one.tokens)


CLAIMS: dict[str, Statement] = {
    "Q16": Statement(
        statement="Generation repeats the pass for every token; a cache saves it.",
        tested=(
            "FLOPs of all steps without a cache over those with one, an exact count, and the ratio"
            " of their times, backend by backend, at the most tokens: both above 1"
        ),
        to_run="studies: [generation], kv_seq_len of some hundred",
        test=lambda _, findings: cache_saves(findings),
        study="generation",
    ),
}
