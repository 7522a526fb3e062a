"""The claims on gradients over distance, Q9, Q10 and Q20: of one layer, and of trained models.

Findings of the study gradient_distance have model, seq_len, shortest_path_steps, and fade_per_token
with its bounds.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import gcd, inf

from ...harness.learning.findings import GradientDistance, TrainedGradients
from ...harness.stats.intervals import Interval
from ..claims.statement import Measured, claim
from ..claims.verdict import Evidence, above, below, by_interval, exactly
from ..data.row_groups import by
from ..formatting import list_text, number_text, percent_text
from .figures import bounded
from .trained import trained_models

FADES_BY = 0.01  # of its logarithm per token: 1 % per token is a fade
LEARNT_SHARE = 0.9  # of the answers, from which a model has learnt what a gradient is asked for
OPEN = "of a kind that these lengths leave open"
ATTENTION, RECURRENT = "attention", "a recurrent layer"
CELLS = ("gru", "lstm", "rnn")
FADES = {ATTENTION: (-FADES_BY, FADES_BY), **dict.fromkeys(CELLS, (-inf, -FADES_BY))}
RADII = ("radius below 1", "radius above 1")
CONVOLUTIONS = {"convolutions": "linear", "dilated convolutions": "logarithmic"}
GROWTHS = {ATTENTION: "constant", **dict.fromkeys(CELLS, "linear"), **CONVOLUTIONS}


@claim(
    "Q9",
    "Gradients are stable through attention and fade exponentially through a recurrent layer.",
    tested=(
        "ln of the norm of d loss / d x_t over the distance, fitted per draw of the weights: within"
        " 1 % per token for attention, falling by more for a GRU, an LSTM and a plain RNN; at first"
        " weights, and trained to find one marked token"
    ),
    study=(GradientDistance, TrainedGradients),
    halves=(ATTENTION, RECURRENT),
)
def gradient_over_distance(run: Measured) -> Iterator[Evidence]:
    """After training, of models that learnt the task: others have no gradient to speak of."""
    by_model = by(run.of(GradientDistance), lambda one: one.model)
    for model in FADES:
        faded = [one for one in by_model.get(model, ()) if one.fade]
        if faded:
            one = max(faded, key=lambda one: one.seq_len)
            text = f"in {one.seq_len} tokens, at first weights"
            yield _faded(model, model, _untrained(one), f"of distance{_most(one)} {text}")
    for trained in trained_models(run.of(TrainedGradients)):
        after, right = trained.fade("after"), trained.accuracy
        if trained.model in FADES and after.units:
            text = f"over {len(trained.trainings[0].gradient_norms_after)} tokens;"
            text += f" {percent_text(right.value)} of the answers are right"
            found = _faded(f"{trained.model}, trained", trained.model, after, text)
            learnt = right.low >= LEARNT_SHARE
            yield found if learnt else found._replace(verdict="not decided")


def _untrained(one: GradientDistance) -> Interval:
    assert one.fade is not None
    value, low, high = one.fade
    return Interval(value=value, low=low, high=high, units=1)


def _most(one: GradientDistance) -> str:
    return f" up to {one.fitted_tokens}" if one.fitted_tokens else ""


def _faded(of: str, model: str, fade: Interval, where: str) -> Evidence:
    text = f"ln of the gradient changes by {bounded(fade)} per token {where}"
    half = ATTENTION if model == ATTENTION else RECURRENT
    return Evidence(of, by_interval(fade.low, fade.high, FADES[model]), text, half)


@claim(
    "Q20",
    "Gradients fade through a plain RNN whose recurrent weights have a spectral radius below 1, and"
    " grow where it is above.",
    tested="slope of Q9 at first weights that are scaled to radii from 0.5 to 3: below 0, above 0",
    study=GradientDistance,
    halves=RADII,
)
def gradient_over_radius(run: Measured) -> Iterator[Evidence]:
    """tanh flattens what large weights make large, so that a radius above 1 need not be enough."""
    for one in run.of(GradientDistance):
        radius = one.spectral_radius
        if radius is not None and radius != 1 and one.fade:
            fade = _untrained(one)
            half, judge = (RADII[0], below) if radius < 1 else (RADII[1], above)
            text = (
                f"ln of the gradient changes by {bounded(fade)} per token at {number_text(radius)}"
            )
            yield Evidence(half, judge(fade.low, fade.high, 0.0), text, half)


@claim(
    "Q10",
    "The path between two tokens is O(1) for attention, O(N) for a recurrent layer, O(N/k) or"
    " O(log N) for convolutions.",
    tested="exact count of operations on the shortest way through autograd's graph, over N",
    study=GradientDistance,
    halves=(ATTENTION, RECURRENT, *CONVOLUTIONS),
)
def path_length(run: Measured) -> Iterator[Evidence]:
    by_model = by(run.of(GradientDistance), lambda one: one.model)
    for model, claimed in GROWTHS.items():
        counted = ((one.seq_len, one.shortest_path_steps) for one in by_model.get(model, ()))
        found = sorted((n, steps) for n, steps in counted if steps is not None)
        if len(found) > 2:
            growth = _growth(found)
            verdict = "not decided" if growth == OPEN else exactly(growth == claimed)
            lengths, steps = (list_text([str(n) for n in of]) for of in zip(*found, strict=True))
            text = f"{growth}: {steps} operations from the first to the last of {lengths} tokens"
            yield Evidence(model, verdict, text, RECURRENT if model in CELLS else model)


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
        return "of another kind"
    # Two different rises can be rounded from anything.
    return "logarithmic" if len(rises) >= 3 or len(set(rises)) == 1 else OPEN
