"""The claims on gradients over distance, Q9 and Q10: of one layer, and of trained models.

Findings of the study gradient_distance have model, seq_len, shortest_path_steps, and fade_per_token
with its bounds.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import gcd, inf

from ...harness.learning.findings import GradientDistance, TrainedGradients
from ..claims.statement import Measured, claim
from ..claims.verdict import (
    ClaimVerdict,
    Evidence,
    by_interval,
)
from ..formatting import list_text, number_text, percent_text, range_text
from .trained import trained_models

FADES_BY = 0.01  # of its logarithm per token: 1 % per token is a fade
LEARNT_SHARE = 0.9  # of the answers, from which a model has learnt what a gradient is asked for
OPEN = "of a kind that these lengths leave open"
OTHER = "of another kind"
FADES = {"attention": (-FADES_BY, FADES_BY), "gru": (-inf, -FADES_BY)}
GROWTHS = {
    "attention": "constant",
    "gru": "linear",
    "convolutions": "linear",
    "dilated convolutions": "logarithmic",
}


@claim(
    "Q9",
    "Gradients are stable through attention and fade exponentially through a recurrent layer.",
    tested=(
        "ln of the norm of d loss / d x_t over the distance, fitted per draw of the weights: within"
        " 1 % per token for attention, falling by more for a GRU; at first weights, and trained to"
        " find one marked token"
    ),
    needs=f"studies: [{GradientDistance.STUDY}, {TrainedGradients.STUDY}]",
    study=GradientDistance,
)
def gradient_over_distance(run: Measured) -> Iterator[Evidence]:
    """After training, of models that learnt the task: others have no gradient to speak of."""
    change = "ln of the gradient changes by {} per token"
    for model, claimed in FADES.items():
        found = [one for one in run.of(GradientDistance) if one.model == model and one.fade]
        if found:
            one = max(found, key=lambda one: one.seq_len)
            assert one.fade is not None
            value, low, high = one.fade
            text = change.format(f"{number_text(value)}{range_text(low, high)}")
            most = f" up to {one.fitted_tokens}" if one.fitted_tokens else ""
            text += f" of distance{most} in {one.seq_len} tokens, at first weights"
            yield Evidence(model, by_interval(low, high, claimed), text)
    for trained in trained_models(run.of(TrainedGradients)):
        after, right = trained.fade("after"), trained.accuracy
        if trained.model in FADES and after.units:
            verdict = by_interval(after.low, after.high, FADES[trained.model])
            text = change.format(f"{number_text(after.value)}{range_text(after.low, after.high)}")
            text += (
                f" over {len(trained.trainings[0].gradient_norms_after)} tokens;"
                f" {percent_text(right.value)} of the answers are right"
            )
            learnt = right.low >= LEARNT_SHARE
            yield Evidence(f"{trained.model}, trained", verdict if learnt else "inconclusive", text)


@claim(
    "Q10",
    "The path between two tokens is O(1) for attention, O(N) for a recurrent layer, O(N/k) or"
    " O(log N) for convolutions.",
    tested="exact count of operations on the shortest way through autograd's graph, over N",
    study=GradientDistance,
)
def path_length(run: Measured) -> Iterator[Evidence]:
    for model, claimed in GROWTHS.items():
        found = sorted(
            (one.seq_len, one.shortest_path_steps)
            for one in run.of(GradientDistance)
            if one.model == model and one.shortest_path_steps is not None
        )
        if len(found) < 3:
            continue
        growth = _growth(found)
        steps, lengths = (list_text([f"{pair[at]}" for pair in found]) for at in (1, 0))
        verdict: ClaimVerdict = "supported" if growth == claimed else "refuted"
        yield Evidence(
            model,
            "inconclusive" if growth == OPEN else verdict,
            f"{growth}: {steps} operations from the first to the last of {lengths} tokens",
        )


def _growth(found: Sequence[tuple[int, int]]) -> str:
    """Of counts of operations at lengths that double, (length, count) each.

    A constant part and one that doubles is linear. A constant rise per doubling, up to the whole
    layers that it is rounded to, is logarithmic: then no rise differs from another by more than a
    layer, nor does the first half of the doublings from the last half.
    """
    if any(after != 2 * before for (before, _), (after, _) in pairwise(found)):
        return OPEN
    rises = [after - before for (_, before), (_, after) in pairwise(found)]
    if not any(rises):
        return "constant"
    if rises[0] > 0 and all(after == 2 * before for before, after in pairwise(rises)):
        return "linear"
    layer, half = gcd(*rises), len(rises) // 2
    uneven = max(max(rises) - min(rises), abs(sum(rises[:half]) - sum(rises[-half:])))
    if min(rises) < 0 or uneven > layer:
        return OTHER
    # Two different rises can be rounded from anything.
    return "logarithmic" if len(rises) >= 3 or len(set(rises)) == 1 else OPEN
