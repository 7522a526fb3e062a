"""The claims that studies answer. A finding that lacks what a claim needs is passed over.

Each claim reads the findings of one study, an object per finding:
    score_scale          C5    d_k, scaled (bool), score_variance, score_variance_low, score_variance_high
    head_copies          C6    layout or backend, heads, copied_bytes
    layer_properties     C7-9  property (rows_sum_to_one, outputs_between_values, order_permutes_outputs,
                               scaling_inputs_keeps_weights), holds (bool), worst_error_ratio
    parameter_count      C15   d_k_rule, heads, parameter_count
    output_share         C16   backend, seq_len, share_ratio, share_low_ratio, share_high_ratio: joining and W_O in the layer's time
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ...formatting import bytes_text, number_text
from .claim_verdict import Part, Verdict, by_interval, jointly, number, over_problems

Finding = dict[str, Any]
MARGIN_RATIO = 0.05  # what counts as equal, as for the cost of heads
HALF = 0.5  # of a layer's time: what takes more is its bottleneck


def of_study(findings: Sequence[Any], name: str) -> list[Finding]:
    return [one for one in findings if isinstance(one, dict) and one.get("study") == name]


def score_scale(findings: Sequence[Any]) -> list[Part]:
    """C5: the variance over the expected one, d_k without the factor and 1 with it, at
    every width.
    """
    parts = []
    for scaled, words in ((False, "without 1/sqrt(d_k)"), (True, "with 1/sqrt(d_k)")):
        ratios = []
        for one in of_study(findings, "score_scale"):
            d_k, known = (
                number(one, "d_k"),
                [number(one, f"score_variance{end}") for end in ("", "_low", "_high")],
            )
            if one.get("scaled") is scaled and d_k and None not in known:
                ratios.append(
                    (d_k, [value / (1 if scaled else d_k) for value in known if value is not None])
                )
        if ratios:
            verdict = over_problems(
                by_interval(low, high, _within(MARGIN_RATIO)) for _, (_, low, high) in ratios
            )
            widths = sorted(d_k for d_k, _ in ratios)
            values = [value for _, (value, _, _) in ratios]
            said = (
                f"variance over {'1' if scaled else 'd_k'}: {_span(values)} for d_k = {widths[0]:g}"
                f" to {widths[-1]:g}"
            )
            parts.append(Part(of=words, verdict=verdict, numbers=said))
    return parts


def head_copies(findings: Sequence[Any]) -> list[Part]:
    """C6: bytes that joining more than one head takes."""
    copied: dict[str, list[tuple[float, float]]] = {}
    for one in of_study(findings, "head_copies"):
        heads, size = number(one, "heads"), number(one, "copied_bytes")
        if heads is not None and heads > 1 and size is not None:
            copied.setdefault(str(one.get("layout") or one.get("backend")), []).append(
                (heads, size)
            )
    parts = []
    for of, sizes in copied.items():
        heads, size = max(sizes)
        verdict: Verdict = (
            "supported"
            if not any(size for _, size in sizes)
            else "refuted"
            if all(size for _, size in sizes)
            else "depends"
        )
        parts.append(
            Part(of=of, verdict=verdict, numbers=f"{bytes_text(size)} copied at h = {heads:.0f}")
        )
    return parts


def properties(findings: Sequence[Any], *names: str) -> list[Part]:
    """C7, C8, C9: all of the named properties hold on every case that was tried."""
    found = {
        one.get("property"): one
        for one in of_study(findings, "layer_properties")
        if type(one.get("holds")) is bool
    }
    tried = [name for name in names if name in found]
    verdicts: list[Verdict] = ["supported" if found[name]["holds"] else "refuted" for name in tried]
    verdicts += ["not run"] * (len(names) - len(tried))
    said = [
        f"{name.replace('_', ' ')}: off by at most"
        f" {number_text(number(found[name], 'worst_error_ratio')) or 'unknown'}"
        for name in tried
    ]
    return (
        [Part(of="random cases", verdict=jointly(verdicts), numbers="; ".join(said))]
        if tried
        else []
    )


def parameter_count(findings: Sequence[Any]) -> list[Part]:
    """C15: whether the count rises with the heads, for each rule that says how wide a head is."""
    counts: dict[str, dict[float, float]] = {}
    for one in of_study(findings, "parameter_count"):
        heads, count = number(one, "heads"), number(one, "parameter_count")
        if heads is not None and count is not None:
            counts.setdefault(str(one.get("d_k_rule")), {})[heads] = count
    parts = []
    for rule, by_heads in counts.items():
        values = [by_heads[heads] for heads in sorted(by_heads)]
        if len(values) > 1:
            rises = all(after > before for before, after in pairwise(values))
            verdict: Verdict = (
                "supported" if rises else "refuted" if len(set(values)) == 1 else "depends"
            )
            said = (
                f"{values[0]:.0f} at h = {min(by_heads):.0f}, {values[-1]:.0f} at h ="
                f" {max(by_heads):.0f}"
            )
            parts.append(Part(of=f"d_k {rule}", verdict=verdict, numbers=said))
    return parts


def output_share(findings: Sequence[Any]) -> list[Part]:
    """C16: the share of joining and W_O at the longest N."""
    longest: dict[str, tuple[float, float, float, float]] = {}
    for one in of_study(findings, "output_share"):
        n, share, low, high = (
            number(one, name)
            for name in ("seq_len", "share_ratio", "share_low_ratio", "share_high_ratio")
        )
        of = str(one.get("backend"))
        if (
            n is not None
            and share is not None
            and low is not None
            and high is not None
            and (of not in longest or n > longest[of][0])
        ):
            longest[of] = n, share, low, high
    return [
        Part(
            of=of,
            verdict=by_interval(low, high, (HALF, 1.0)),
            numbers=f"{share:.0%} of the layer's time at N = {n:.0f}",
        )
        for of, (n, share, low, high) in longest.items()
    ]


def unanswered(run: Mapping[str, Any], study: str) -> str:
    """Why a study that was asked for has no finding; "" where it has, or nobody asked."""
    for one in run.get("unanswered") or []:
        if isinstance(one, dict) and one.get("study") == study:
            return f"the study found nothing: {one.get('reason') or one.get('status')}"
    return ""


def _within(margin_ratio: float) -> tuple[float, float]:
    return 1 / (1 + margin_ratio), 1 + margin_ratio


def _span(values: Sequence[float]) -> str:
    low, high = number_text(min(values)), number_text(max(values))
    return low if low == high else f"{low} to {high}"
