"""The claims on attention that short studies and rows answer: Q8 to Q17.

Each reads the findings of one study:
    score_scale         Q8    d_k, scaled, softmax_gradient and query_gradient_norm with bounds
    gradient_distance   Q9    model, seq_len, fade_per_token with bounds
    trained_gradients   Q9    model, fade_per_token_after, accuracy_ratio
                        Q10   model, seq_len, shortest_path_steps, longest_path_steps
    attention_facts     Q12, Q13, Q17   statement, holds, holding_ratio, case_count
    initialisation      Q14   rule, d_model, heads, output_variance and gradient_variance, bounds
    joined_projections  Q15   batch, seq_len, time_ratio with bounds
Q11 reads rows of the backend rnn and of attention.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import Any

from ....harness.stats import Interval
from ...data.exactness import is_exact
from ...data.noise_floor import ASSUMED_RATIO
from ...data.row_groups import Row, groups
from ...data.run_meta import finite_number
from ...formatting import (
    beyond_text,
    list_text,
    number_text,
    percent_text,
    range_text,
    times_text,
)
from ..growth import interval_text
from ..ratio import time_ratio
from ..trained_gradients import STUDY as TRAINED
from ..trained_gradients import trained_models
from .claim_verdict import (
    DISTURBED,
    ClaimVerdict,
    Evidence,
    Part,
    agreed,
    by_interval,
    jointly,
    part,
)
from .studies import ALLOWS, Finding, of_study

STEADY_RATIO = 0.05  # a gradient that differs by less over d_k does not depend on it
FADES_BY = 0.01  # of its logarithm per token: 1 % per token is a fade
WELL_SCALED = (0.1, 10.0)  # a variance that a layer changes by less than ten times
LEARNT_SHARE = 0.9  # of the answers, from which a model has learnt what a gradient is asked for
FADES = {"attention": False, "gru": True}
"""Whether a model's gradient is said to fade over the distance."""
GRU_FLOPS = 12  # per token and d²: three gates of two matrices


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
            scaled: _ends(of_study(findings, "score_scale"), name, scaled=scaled)
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


def gradient_over_distance(findings: Sequence[Any]) -> list[Part]:
    """Q9: attention's gradient does not fade over the distance, the recurrent layer's does."""
    parts = []
    for model, fades in FADES.items():
        known = _longest(findings, model, "fade_per_token")
        if known is None:
            continue
        length, fade, low, high = known
        text = (
            f"ln of the gradient changes by {number_text(fade)}{range_text(low, high)} per token"
            f" over {length:.0f} tokens, at first weights"
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
            and (known := _numbers(one, "seq_len", "shortest_path_steps"))
        )
        if len(found) < 3:
            continue
        growth = _growth([steps for _, steps in found])
        text = (
            f"{growth}: {list_text([f'{steps:.0f}' for _, steps in found])} operations from the"
            f" first to the last of {list_text([f'{n:.0f}' for n, _ in found])} tokens"
        )
        verdict: ClaimVerdict = "supported" if growth == claimed else "refuted"
        parts.append(Part(of=model, verdict=verdict, numbers=text))
    return parts


def _growth(steps: Sequence[float]) -> str:
    """Of counts at doubled lengths."""
    rises = [after - before for before, after in pairwise(steps)]
    if not any(rises):
        return "constant"
    if all(after == 2 * before for before, after in pairwise(rises)):
        return "linear"
    return "logarithmic" if max(rises) == rises[0] else "of another kind"


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
                verdict = by_interval(taken.low, taken.high, (0.0, 1.0))
                verdict = "inconclusive" if taken.disturbed else verdict
                text = f"{taken.text} the time of {row['backend']} at {at}"
                text += DISTURBED if taken.disturbed else ""
                times.setdefault(row["backend"], []).append((verdict, text))
    parts = part("FLOPs of a GRU", flops)
    for backend, evidence in times.items():
        parts += part(f"time of a GRU against {backend}", evidence)
    return parts


def holds(findings: Sequence[Any], names: dict[str, str]) -> list[Part]:
    """Q12, Q13, Q17: each statement that the study tried, by the name that the part has."""
    parts = []
    for one in of_study(findings, "attention_facts"):
        known = _numbers(one, "holding_ratio", "case_count")
        of = names.get(str(one.get("statement")))
        if of is None or known is None or type(one.get("holds")) is not bool:
            continue
        share, cases = known
        error = number_text(finite_number(one, "worst_error_ratio")) or "unknown"
        parts.append(
            Part(
                of=of,
                verdict="supported" if one["holds"] else "refuted",
                numbers=(
                    f"in {percent_text(share)}{beyond_text(share)} of {cases:.0f} random cases, off"
                    f" by at most {error}"
                ),
            )
        )
    return parts


def initial_scale(findings: Sequence[Any]) -> list[Part]:
    """Q14: Xavier keeps both variances within ten times, N(0, 1) and N(0, 0.01²) do not."""
    by_rule: dict[str, list[tuple[float, float]]] = {}
    for one in of_study(findings, "initialisation"):
        for name in ("output_variance", "gradient_variance"):
            if known := _numbers(one, f"{name}_low", f"{name}_high"):
                by_rule.setdefault(str(one.get("rule")), []).append((known[0], known[1]))
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


def one_product(findings: Sequence[Any]) -> list[Part]:
    """Q15: three products take longer than one. A study measures in one process, so its interval is
    extended by what processes may differ.
    """
    parts = []
    for one in of_study(findings, "joined_projections"):
        known = _numbers(
            one, "batch", "seq_len", "d_model", "time_ratio", "time_low_ratio", "time_high_ratio"
        )
        if known is None:
            continue
        batch, n, width, ratio, low, high = known
        low, high = low / (1 + ASSUMED_RATIO), high * (1 + ASSUMED_RATIO)
        verdict = by_interval(low, high, (1.0, inf))
        text = f"three take {times_text(ratio, low, high)} the time of one{ALLOWS}"
        of = f"batch {batch:.0f}, N = {n:.0f}, d = {width:.0f}"
        parts.append(Part(of=of, verdict=verdict, numbers=text))
    return parts


# ---- helpers -------------------------------------------------------------------------------------

Bounded = tuple[float, float, float, float]
"""Where, the value, and its bounds."""


def _numbers(one: Finding, *names: str) -> list[float] | None:
    found = [finite_number(one, name) for name in names]
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else None


def _ends(
    findings: Sequence[Finding], name: str, *, scaled: bool
) -> tuple[Bounded, Bounded] | None:
    """At the narrowest and at the widest head."""
    found: list[Bounded] = []
    for one in findings:
        known = _numbers(one, "d_k", name, f"{name}_low", f"{name}_high")
        if one.get("scaled") is scaled and known and min(known) > 0:
            found.append((known[0], known[1], known[2], known[3]))
    return (min(found), max(found)) if len(found) > 1 else None


def _bounded(one: Bounded) -> str:
    return interval_text(Interval(value=one[1], low=one[2], high=one[3], units=0))


def _quotient(one: Bounded, other: Bounded) -> tuple[float, float]:
    """The least and the most that it can be within both intervals."""
    return one[2] / other[3], one[3] / other[2]


def _longest(findings: Sequence[Any], model: str, name: str) -> Bounded | None:
    """At the longest sequence of a model."""
    found: list[Bounded] = []
    for one in of_study(findings, "gradient_distance"):
        known = _numbers(one, "seq_len", name, f"{name}_low", f"{name}_high")
        if one.get("model") == model and known:
            found.append((known[0], known[1], known[2], known[3]))
    return max(found, default=None)
