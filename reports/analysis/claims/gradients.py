"""Gradients over the distance, paths between tokens, and first weights: Q9, Q10 and Q14.

Each reads the findings of a study:
    gradient_distance   Q9    model, seq_len, fade_per_token with bounds, fitted_tokens
                        Q10   model, seq_len, shortest_path_steps
    trained_gradients   Q9    model, fade_per_token_after, accuracy_ratio
    initialisation      Q14   rule, d_model, heads, output_variance and gradient_variance, bounds
"""

from collections.abc import Sequence
from itertools import pairwise
from math import gcd, inf
from typing import Any

from ....harness.rows.findings import Initialisation, findings_of
from ...formatting import list_text, number_text, percent_text, range_text
from ..trained_gradients import STUDY as TRAINED
from ..trained_gradients import trained_models
from .claim_verdict import ClaimVerdict, Part, agreed, by_interval
from .findings import Bounded, Finding, numbers, of_study
from .statement import Statement

FADES_BY = 0.01  # of its logarithm per token: 1 % per token is a fade
WELL_SCALED = (0.1, 10.0)  # a variance that a layer changes by less than ten times
LEARNT_SHARE = 0.9  # of the answers, from which a model has learnt what a gradient is asked for
OPEN = "of a kind that these lengths leave open"
FADES = {"attention": False, "gru": True}
"""Whether a model's gradient is said to fade over the distance."""


def gradient_over_distance(findings: Sequence[Any]) -> list[Part]:
    """Q9: attention's gradient does not fade over the distance, the recurrent layer's does."""
    parts = []
    for model, fades in FADES.items():
        known = _longest(findings, model, "fade_per_token")
        if known is None:
            continue
        (length, fade, low, high), one = known
        most = numbers(one, "fitted_tokens")
        fitted = f" up to {most[0]:.0f}" if most else ""
        text = (
            f"ln of the gradient changes by {number_text(fade)}{range_text(low, high)} per token"
            f" of distance{fitted} in {length:.0f} tokens, at first weights"
        )
        verdict = by_interval(low, high, _claimed(fades=fades))
        parts.append(Part(of=model, verdict=verdict, numbers=text))
    return [*parts, *trained_gradient(findings)]


def trained_gradient(findings: Sequence[Any]) -> list[Part]:
    """Q9 after training, of models that learnt the task: others have no gradient to speak of."""
    parts = []
    for one in trained_models({"studies": of_study(findings, TRAINED)}):
        fades, fade, right = FADES.get(one.model), one.fade("after"), one.accuracy
        if fades is None or not fade.units:
            continue
        text = (
            f"ln of the gradient changes by {number_text(fade.value)}"
            f"{range_text(fade.low, fade.high)} per token over"
            f" {len(one.trainings[0]['gradient_norms_after'])} tokens;"
            f" {percent_text(right.value)} of the answers are right"
        )
        verdict = by_interval(fade.low, fade.high, _claimed(fades=fades))
        learnt = right.low >= LEARNT_SHARE
        parts.append(
            Part(
                of=f"{one.model}, trained",
                verdict=verdict if learnt else "inconclusive",
                numbers=text,
            )
        )
    return parts


def _longest(findings: Sequence[Any], model: str, name: str) -> tuple[Bounded, Finding] | None:
    """At the longest sequence of a model."""
    found: list[tuple[Bounded, Finding]] = []
    for one in of_study(findings, "gradient_distance"):
        known = numbers(one, "seq_len", name, f"{name}_low", f"{name}_high")
        if one.get("model") == model and known:
            found.append(((known[0], known[1], known[2], known[3]), one))
    return max(found, key=lambda pair: pair[0], default=None)


def _claimed(*, fades: bool) -> tuple[float, float]:
    return (-inf, -FADES_BY) if fades else (-FADES_BY, FADES_BY)


def path_length(findings: Sequence[Any]) -> list[Part]:
    """Q10: exact counts over N: constant, proportional to N, or a constant per doubling."""
    growths = {
        "attention": "constant",
        "gru": "linear",
        "convolutions": "linear",
        "dilated convolutions": "logarithmic",
    }
    parts = []
    for model, claimed in growths.items():
        found = sorted(
            (known[0], known[1])
            for one in of_study(findings, "gradient_distance")
            if one.get("model") == model
            and (known := numbers(one, "seq_len", "shortest_path_steps"))
        )
        if len(found) < 3:
            continue
        growth = _growth(found)
        text = (
            f"{growth}: {list_text([f'{steps:.0f}' for _, steps in found])} operations from the"
            f" first to the last of {list_text([f'{n:.0f}' for n, _ in found])} tokens"
        )
        verdict: ClaimVerdict = "supported" if growth == claimed else "refuted"
        if growth == OPEN:
            verdict = "inconclusive"
        parts.append(Part(of=model, verdict=verdict, numbers=text))
    return parts


def _growth(found: Sequence[tuple[float, float]]) -> str:
    """Of counts of operations at lengths that double, (length, count) each.

    A constant part and one that doubles is linear; a constant rise per doubling is logarithmic.
    """
    if any(after != 2 * before for (before, _), (after, _) in pairwise(found)):
        return OPEN
    rises = [int(after - before) for (_, before), (_, after) in pairwise(found)]
    if not any(rises):
        return "constant"
    if rises[0] > 0 and all(after == 2 * before for before, after in pairwise(rises)):
        return "linear"
    return _logarithmic(rises)


def _logarithmic(rises: Sequence[int]) -> str:
    """Whether the rises per doubling are one constant, up to whole layers.

    The layers needed are the logarithm rounded up. Rounded multiples of a constant have equally
    long stretches that differ by one layer at most, and no other sequence has (Morse and Hedlund
    1940). Every rise is a whole number of layers; two rises can be rounded from anything.
    """
    layer = gcd(*rises)
    counts = [rise // layer for rise in rises]
    for length in range(1, len(counts)):
        sums = [sum(counts[at : at + length]) for at in range(len(counts) - length + 1)]
        if max(sums) - min(sums) > 1:
            return "of another kind"
    if min(counts) < 0:
        return "of another kind"
    return "logarithmic" if len(rises) >= 3 or len(set(rises)) == 1 else OPEN


def initial_scale(findings: Sequence[Any]) -> list[Part]:
    """Q14: Xavier keeps both variances within ten times, N(0, 1) and N(0, 0.01²) do not."""
    by_rule: dict[str, list[tuple[float, float]]] = {}
    for one in findings_of(Initialisation, findings):
        by_rule.setdefault(one.rule, []).extend(
            [
                (one.output_variance_low, one.output_variance_high),
                (one.gradient_variance_low, one.gradient_variance_high),
            ]
        )
    parts = []
    for rule, found in by_rule.items():
        scaled = agreed(by_interval(low, high, WELL_SCALED) for low, high in found)
        if rule != "xavier":  # the statement is that these do worse
            opposite: dict[ClaimVerdict, ClaimVerdict] = {
                "supported": "refuted",
                "refuted": "supported",
            }
            scaled = opposite.get(scaled, scaled)
        low, high = min(low for low, _ in found), max(high for _, high in found)
        text = f"variances of outputs and gradients {number_text(low)} to {number_text(high)}"
        parts.append(Part(of=rule, verdict=scaled, numbers=text))
    return parts


CLAIMS: dict[str, Statement] = {
    "Q9": Statement(
        statement=(
            "Gradients are stable through attention and fade exponentially through a recurrent"
            " layer."
        ),
        tested=(
            "ln of the norm of d loss / d x_t over the distance, fitted per draw of the weights:"
            " within 1 % per token for attention, falling by more for a GRU; at first weights, and"
            " trained to find one marked token"
        ),
        to_run="studies: [gradient_distance, trained_gradients]",
        test=lambda _, findings: gradient_over_distance(findings),
        study="gradient_distance",
    ),
    "Q10": Statement(
        statement=(
            "The path between two tokens is O(1) for attention, O(N) for a recurrent layer, O(N/k)"
            " or O(log N) for convolutions."
        ),
        tested="exact count of operations on the shortest way through autograd's graph, over N",
        to_run="studies: [gradient_distance]",
        test=lambda _, findings: path_length(findings),
        study="gradient_distance",
    ),
    "Q14": Statement(
        statement=(
            "Xavier initialisation keeps activations and gradients well scaled; N(0, 1) and too"
            " small weights do not."
        ),
        tested=(
            "variance of a layer's outputs and gradients over d_model and heads, within ten times"
            " that of its inputs or not"
        ),
        to_run="studies: [initialisation]",
        test=lambda _, findings: initial_scale(findings),
        study="initialisation",
    ),
}
