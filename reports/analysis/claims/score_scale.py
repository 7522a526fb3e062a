"""The factor 1/sqrt(d_k): C5, the variance of scores, and Q8, the softmax's derivative.

Both read the study score_scale.
"""

from collections.abc import Sequence
from math import inf
from typing import Any

from ....harness.rows.findings import ScoreScale, findings_of
from ....harness.stats.intervals import Interval
from ...formatting import number_text
from ..growth import interval_text
from .claim_verdict import EQUAL, Part, agreed, by_interval, jointly
from .findings import Bounded
from .statement import Statement

STEADY_RATIO = 0.05  # a gradient that differs by less over d_k does not depend on it


def score_scale(findings: Sequence[Any]) -> list[Part]:
    """C5: variance over the expected one (d_k without the factor, 1 with it) for every d_k."""
    parts = []
    for scaled, of in ((False, "without 1/sqrt(d_k)"), (True, "with 1/sqrt(d_k)")):
        ratios = []
        for one in findings_of(ScoreScale, findings):
            known = one.bounded("score_variance")
            if one.scaled is scaled and known:
                expected = 1 if scaled else one.d_k
                ratios.append((one.d_k, [value / expected for value in known[1:]]))
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


def softmax_gradient(findings: Sequence[Any]) -> list[Part]:
    """Q8: without the factor the derivative falls as d_k grows, with it not.

    By the scores the softmax gets, and by the query, which the factor itself makes smaller.
    """
    names = {
        "softmax_gradient": "of a weight by a score",
        "query_gradient_norm": "of the weights by the query",
    }
    parts = []
    for name, of in names.items():
        ends = {
            scaled: _ends(findings_of(ScoreScale, findings), name, scaled=scaled)
            for scaled in (False, True)
        }
        plain, scaled = ends[False], ends[True]
        if plain is None or scaled is None:
            continue
        steady = (1 - STEADY_RATIO, 1 + STEADY_RATIO)
        # The smaller derivative, at the widest head, must be the one without the factor.
        verdict = jointly(
            (
                by_interval(*_quotient(plain[1], scaled[1]), (0.0, 1.0)),
                by_interval(*_quotient(plain[1], plain[0]), (0.0, 1.0)),
                by_interval(*_quotient(scaled[1], scaled[0]), (steady[0], inf)),
            )
        )
        text = (
            f"at d_k = {plain[1][0]:.0f} {_bounded(plain[1])} without the factor and"
            f" {_bounded(scaled[1])} with it; at d_k = {plain[0][0]:.0f}"
            f" {_bounded(plain[0])} and {_bounded(scaled[0])}"
        )
        parts.append(Part(of=of, verdict=verdict, numbers=text))
    return parts


def _ends(
    findings: Sequence[ScoreScale], name: str, *, scaled: bool
) -> tuple[Bounded, Bounded] | None:
    """At the narrowest and at the widest head."""
    found: list[Bounded] = []
    for one in findings:
        known = one.bounded(name)
        if one.scaled is scaled and known and min(known) > 0:
            found.append(known)
    return (min(found), max(found)) if len(found) > 1 else None


def _bounded(one: Bounded) -> str:
    return interval_text(Interval(value=one[1], low=one[2], high=one[3], units=0))


def _quotient(one: Bounded, other: Bounded) -> tuple[float, float]:
    """The least and the most that it can be within both intervals."""
    return one[2] / other[3], one[3] / other[2]


CLAIMS: dict[str, Statement] = {
    "C5": Statement(
        statement="Without 1/sqrt(d_k) the variance of the scores is d_k, with it 1.",
        tested="interval of the variance over the expected one within 5 %, for every d_k",
        to_run="studies: [score_scale]",
        test=lambda _, findings: score_scale(findings),
        study="score_scale",
    ),
    "Q8": Statement(
        statement="Scaling by 1/sqrt(d_k) keeps gradients alive.",
        tested=(
            "derivative of the softmax at random queries and keys over d_k: falls without the"
            " factor, is the larger one and does not fall with it"
        ),
        to_run="studies: [score_scale]",
        test=lambda _, findings: softmax_gradient(findings),
        study="score_scale",
    ),
}
