"""The claims that studies answer. Findings that lack what a claim needs are skipped.

Each claim reads the findings of one study, an object per finding:
    score_scale        C5    d_k, scaled (bool), score_variance, score_variance_low,
                             score_variance_high
    head_copies        C6    layout or backend, heads, copied_bytes
    layer_properties   C7-9  property (rows_sum_to_one, outputs_between_values,
                             order_permutes_outputs, scaling_inputs_keeps_weights), holds (bool),
                             worst_error_ratio
    parameter_count    C15   d_k_rule, heads, parameter_count
    output_share       C16   backend, seq_len, share_ratio, share_low_ratio, share_high_ratio:
                             of joining and W_O in the layer's time
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ...data.noise_floor import ASSUMED_RATIO, share_text
from ...data.run_meta import finite_number
from ...formatting import beyond_text, bytes_text, number_text
from ..heads import MARGIN_RATIO
from .claim_verdict import ClaimVerdict, Part, agreed, by_interval, jointly

Finding = dict[str, Any]
ALLOWS = f", which allows for {share_text(ASSUMED_RATIO, 'assumed')}"
"""After the interval of a study, which measures in one process."""
HALF = 0.5  # a part of a layer that takes more of its time is a bottleneck
EQUAL = (1 / (1 + MARGIN_RATIO), 1 + MARGIN_RATIO)


def of_study(findings: Sequence[Any], name: str) -> list[Finding]:
    return [one for one in findings if isinstance(one, dict) and one.get("study") == name]


def _numbers(one: Finding, *names: str) -> list[float] | None:
    """None unless all are finite numbers."""
    found = [finite_number(one, name) for name in names]
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else None


def score_scale(findings: Sequence[Any]) -> list[Part]:
    """C5: variance over the expected one (d_k without the factor, 1 with it) for every d_k."""
    names = ("d_k", "score_variance", "score_variance_low", "score_variance_high")
    parts = []
    for scaled, of in ((False, "without 1/sqrt(d_k)"), (True, "with 1/sqrt(d_k)")):
        ratios = []
        for one in of_study(findings, "score_scale"):
            known = _numbers(one, *names)
            if one.get("scaled") is scaled and known and known[0]:
                d_k, *variances = known
                ratios.append((d_k, [value / (1 if scaled else d_k) for value in variances]))
        if ratios:
            verdict = agreed(by_interval(low, high, EQUAL) for _, (_, low, high) in ratios)
            widths = sorted(d_k for d_k, _ in ratios)
            values, lows, highs = zip(*(ratio for _, ratio in ratios), strict=True)
            ends = dict.fromkeys((number_text(min(values)), number_text(max(values))))
            text = (
                f"variance over {'1' if scaled else 'd_k'}: {' to '.join(ends)} for d_k ="
                f" {widths[0]:g} to {widths[-1]:g}, intervals from {number_text(min(lows))} to"
                f" {number_text(max(highs))}"
            )
            parts.append(Part(of=of, verdict=verdict, numbers=text))
    return parts


def head_copies(findings: Sequence[Any]) -> list[Part]:
    """C6: the bytes that joining more than one head copies."""
    copied: dict[str, list[tuple[float, float]]] = {}
    for one in of_study(findings, "head_copies"):
        known = _numbers(one, "heads", "copied_bytes")
        if known and known[0] > 1:
            of = str(one.get("layout") or one.get("backend"))
            copied.setdefault(of, []).append((known[0], known[1]))
    parts = []
    for of, sizes in copied.items():
        heads, size = max(sizes)
        some = {bool(size) for _, size in sizes}
        verdict: ClaimVerdict = (
            "depends" if len(some) > 1 else "refuted" if True in some else "supported"
        )
        text = f"{bytes_text(size)} copied at h = {heads:.0f}"
        parts.append(Part(of=of, verdict=verdict, numbers=text))
    return parts


def properties(findings: Sequence[Any], *names: str) -> list[Part]:
    """C7, C8, C9: all named properties hold in every case that was tried."""
    found = {
        one.get("property"): one
        for one in of_study(findings, "layer_properties")
        if type(one.get("holds")) is bool
    }
    tried = [name for name in names if name in found]
    if not tried:
        return []
    verdicts: list[ClaimVerdict] = ["supported" if found[n]["holds"] else "refuted" for n in tried]
    verdicts += ["not run"] * (len(names) - len(tried))
    texts = []
    for name in tried:
        error = number_text(finite_number(found[name], "worst_error_ratio")) or "unknown"
        texts.append(f"{name.replace('_', ' ')}: off by at most {error}")
    return [Part(of="random cases", verdict=jointly(verdicts), numbers="; ".join(texts))]


def parameter_count(findings: Sequence[Any]) -> list[Part]:
    """C15: whether the count rises with the heads, for each rule for the width of a head."""
    counts: dict[str, dict[float, float]] = {}
    for one in of_study(findings, "parameter_count"):
        if known := _numbers(one, "heads", "parameter_count"):
            counts.setdefault(str(one.get("d_k_rule")), {})[known[0]] = known[1]
    parts = []
    for rule, by_heads in counts.items():
        values = [by_heads[heads] for heads in sorted(by_heads)]
        if len(values) > 1:
            rises = all(after > before for before, after in pairwise(values))
            verdict: ClaimVerdict = (
                "supported" if rises else "refuted" if len(set(values)) == 1 else "depends"
            )
            text = (
                f"{values[0]:.0f} at h = {min(by_heads):.0f}, {values[-1]:.0f} at h ="
                f" {max(by_heads):.0f}"
            )
            parts.append(Part(of=f"d_k {rule}", verdict=verdict, numbers=text))
    return parts


def output_share(findings: Sequence[Any]) -> list[Part]:
    """C16: the share of joining and W_O at the longest N.

    A study measures in one process, so its interval is extended by what processes may differ.
    """
    names = ("seq_len", "share_ratio", "share_low_ratio", "share_high_ratio")
    longest: dict[str, list[float]] = {}
    for one in of_study(findings, "output_share"):
        known, of = _numbers(one, *names), str(one.get("backend"))
        if known and (of not in longest or known[0] > longest[of][0]):
            longest[of] = known
    parts = []
    for of, (n, share, own_low, own_high) in longest.items():
        low, high = own_low / (1 + ASSUMED_RATIO), min(1.0, own_high * (1 + ASSUMED_RATIO))
        text = (
            f"{share:.0%}{beyond_text(share)} of the layer's time at N = {n:.0f} ({low:.0%} to"
            f" {high:.0%}){ALLOWS}"
        )
        parts.append(Part(of=of, verdict=by_interval(low, high, (HALF, 1.0)), numbers=text))
    return parts


def unanswered(run: Mapping[str, Any], study: str) -> str:
    """Why a requested study has no findings; "" if it has, or was not requested."""
    for one in of_study(run.get("unanswered") or [], study):
        return f"the study found nothing: {one.get('reason') or one.get('status')}"
    return ""
