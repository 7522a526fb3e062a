"""The claims that findings of studies answer: C5 to C9, C15, Q8, Q12 to Q17, and a part of C16.

A finding that lacks what a claim needs is skipped.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf, isfinite, nan

from ...harness.rows.findings import (
    AttentionFact,
    Generated,
    HeadCopy,
    Initialisation,
    JoinedProjections,
    LayerProperty,
    OutputShare,
    ParameterCount,
    ScoreScale,
    Timed,
    by,
)
from ...harness.stats.intervals import Interval
from ..data.generation import complaints, flops_exponent, timed
from ..data.processor_time import in_most
from ..formatting import (
    beyond_text,
    bytes_text,
    count_text,
    number_text,
    percent_text,
    range_text,
    times_text,
)
from ..growth_fit import interval_text
from ..ratio import Noise
from .statement import Measured, Statement, claim
from .verdict import (
    EQUAL,
    OPPOSITE,
    ClaimVerdict,
    Evidence,
    above,
    agreed,
    by_interval,
    exactly,
    jointly,
)

# ---- exact counts --------------------------------------------------------------------------------


@claim(
    "C6",
    "View and transpose join the heads without copying.",
    tested="exact bytes that joining takes, h > 1",
    study=HeadCopy,
)
def head_copies(run: Measured) -> Iterator[Evidence]:
    for one in run.of(HeadCopy):
        if one.heads > 1 and one.copied_bytes is not None:
            text = f"{bytes_text(one.copied_bytes)} copied at h = {one.heads}"
            yield Evidence(one.layout or one.backend, exactly(not one.copied_bytes), text)


@claim(
    "C15",
    "More heads mean more parameters.",
    tested=(
        "parameters counted over h, for heads that share d_model and for heads of a fixed width"
    ),
    study=ParameterCount,
)
def parameter_count(run: Measured) -> Iterator[Evidence]:
    for rule, some in by(run.of(ParameterCount), lambda one: one.d_k_rule).items():
        for few, many in pairwise(sorted(some, key=lambda one: one.heads)):
            texts = [f"{one.parameter_count} at h = {one.heads}" for one in (few, many)]
            verdict = exactly(many.parameter_count > few.parameter_count)
            yield Evidence(f"d_k {rule}", verdict, ", ".join(texts))


# ---- properties that hold or do not --------------------------------------------------------------


def _off(one: LayerProperty | AttentionFact) -> str:
    return f"off by at most {number_text(one.worst_error_ratio) or 'unknown'}"


def properties(name: str, statement: str, *wanted: str) -> Statement:
    """All named properties of a layer hold in every case that was tried."""

    def test(run: Measured) -> Iterator[Evidence]:
        found = {one.property: one for one in run.of(LayerProperty)}
        tried = [found[one] for one in wanted if one in found]
        if tried:
            verdicts: list[ClaimVerdict] = ["not run"] * (len(wanted) - len(tried))
            verdicts += [exactly(one.holds) for one in tried]
            texts = [f"{one.property.replace('_', ' ')}: {_off(one)}" for one in tried]
            yield Evidence("random cases", jointly(verdicts), "; ".join(texts))

    return claim(name, statement, tested="random cases in float64", study=LayerProperty)(test)


def facts(name: str, statement: str, tested: str, **of: str) -> Statement:
    """Each statement that the study tried, by what it is tried on."""

    def test(run: Measured) -> Iterator[Evidence]:
        for one in run.of(AttentionFact):
            if one.statement in of:
                share = f"{percent_text(one.holding_ratio)}{beyond_text(one.holding_ratio)}"
                text = f"in {share} of {one.case_count} random cases, {_off(one)}"
                yield Evidence(of[one.statement], exactly(one.holds), text)

    return claim(name, statement, tested=tested, study=AttentionFact)(test)


C7 = properties(
    "C7",
    "Rows of the weights sum to 1, and outputs lie between the values.",
    *("rows_sum_to_one", "outputs_between_values"),
)
C8 = properties(
    "C8",
    "Without positions, permuting the inputs permutes the outputs.",
    "order_permutes_outputs",
)
C9 = properties(
    "C9",
    "Scaling all inputs by a constant leaves the weights as they are.",
    "scaling_inputs_keeps_weights",
)
Q12A = facts(
    "Q12a",
    "Outputs lie in the convex hull of the values.",
    "linear program per output on random cases in float64, not a box",
    outputs_in_hull_of_values="random cases",
)
Q12B = facts(
    "Q12b",
    "... and in that of the inputs.",
    "the same linear program, with W_V between inputs and values",
    outputs_in_hull_of_inputs="random cases",
)
Q13 = facts(
    "Q13",
    "If one score rises, its weight rises and all others fall.",
    "signs of the changes on random cases in float64",
    other_weights_fall="random cases",
)
Q17 = facts(
    "Q17",
    "Masking by -1e9 is the same as masking by minus infinity.",
    "random cases in float64, with and without rows that see no key",
    fill_equals_infinity="rows that see a key",
    fill_equals_infinity_without_keys="rows that see no key",
)


# ---- scale ---------------------------------------------------------------------------------------

STEADY_RATIO = 0.05  # a gradient that differs by less over d_k does not depend on it
WELL_SCALED = (0.1, 10.0)  # a variance that a layer changes by less than ten times


@claim(
    "C5",
    "Without 1/sqrt(d_k) the variance of the scores is d_k, with it 1.",
    tested="interval of the variance over the expected one within 5 %, for every d_k",
    study=ScoreScale,
    halves=("without 1/sqrt(d_k)", "with 1/sqrt(d_k)"),
)
def score_scale(run: Measured) -> Iterator[Evidence]:
    for scaled, of in ((False, "without 1/sqrt(d_k)"), (True, "with 1/sqrt(d_k)")):
        for d_k, one in _over_width(run, "score_variance", scaled=scaled):
            wanted = 1.0 if scaled else d_k
            value, low, high = (end / wanted for end in (one.value, one.low, one.high))
            text = f"variance {number_text(value)} times {'1' if scaled else 'd_k'}"
            text += f"{range_text(low, high)} at d_k = {d_k:g}"
            yield Evidence(of, by_interval(low, high, EQUAL), text, half=of)


@claim(
    "Q8",
    "Scaling by 1/sqrt(d_k) keeps gradients alive.",
    tested=(
        "derivative of the softmax at random queries and keys over d_k: falls without the factor,"
        " is the larger one and does not fall with it"
    ),
    study=ScoreScale,
)
def softmax_gradient(run: Measured) -> Iterator[Evidence]:
    """By the scores the softmax gets, and by the query, which the factor itself makes smaller."""
    for name, of in (
        ("softmax_gradient", "of a weight by a score"),
        ("query_gradient_norm", "of the weights by the query"),
    ):
        plain, scaled = (_over_width(run, name, scaled=which) for which in (False, True))
        if len(plain) < 2 or len(scaled) < 2 or any(one.low <= 0 for _, one in plain + scaled):
            continue
        (narrow, first), (wide, last) = plain[0], plain[-1]
        scaled_first, scaled_last = scaled[0][1], scaled[-1][1]
        # The smaller derivative, at the widest head, must be the one without the factor.
        verdict = jointly(
            by_interval(one.low / other.high, one.high / other.low, claimed)
            for one, other, claimed in (
                (last, scaled_last, (0.0, 1.0)),
                (last, first, (0.0, 1.0)),
                (scaled_last, scaled_first, (1 - STEADY_RATIO, inf)),
            )
        )
        text = (
            f"at d_k = {wide:.0f} {interval_text(last)} without the factor and"
            f" {interval_text(scaled_last)} with it; at d_k = {narrow:.0f}"
            f" {interval_text(first)} and {interval_text(scaled_first)}"
        )
        yield Evidence(of, verdict, text)


def _over_width(run: Measured, name: str, *, scaled: bool) -> list[tuple[float, Interval]]:
    """By d_k."""
    found = [
        (width, Interval(value=value, low=low, high=high, units=0))
        for one in run.of(ScoreScale)
        if one.scaled is scaled and (known := one.bounded(name))
        for width, value, low, high in [known]
    ]
    return sorted(found, key=lambda pair: pair[0])


@claim(
    "Q14",
    "Xavier initialisation keeps activations and gradients well scaled; N(0, 1) and too small"
    " weights do not.",
    tested=(
        "variance of a layer's outputs and gradients over d_model and heads, within ten times that"
        " of its inputs or not"
    ),
    study=Initialisation,
    halves=("Xavier", "other rules"),
)
def initial_scale(run: Measured) -> Iterator[Evidence]:
    names = ("output_variance", "gradient_variance")
    for rule, some in by(run.of(Initialisation), lambda one: one.rule).items():
        found = [(one[f"{name}_low"], one[f"{name}_high"]) for one in some for name in names]
        scaled = agreed(by_interval(low, high, WELL_SCALED) for low, high in found)
        low, high = min(low for low, _ in found), max(high for _, high in found)
        # The statement is that the other rules do worse.
        verdict = scaled if rule == "xavier" else OPPOSITE.get(scaled, scaled)
        text = f"variances of outputs and gradients {number_text(low)} to {number_text(high)}"
        half = "Xavier" if rule == "xavier" else "other rules"
        yield Evidence(rule, verdict, text, half)


# ---- times of a study, which are of one process --------------------------------------------------


def is_disturbed(one: Timed) -> bool:
    """Whether other work competed for the cores in most blocks, as far as somebody counted."""
    return one.blocks is not None and in_most(one.contended_blocks, one.blocks)


def extended(one: Timed, low: float, high: float) -> tuple[float, float, str]:
    """The bounds of a ratio extended by what processes differ, with the words that say so."""
    ratio, words = Noise().text(one_process=True, other_run=False, disturbed=is_disturbed(one))
    if one.contended_blocks is None or one.blocks is None:  # in rows of earlier versions
        words += " (whether other work disturbed them was not recorded)"
    return low / (1 + ratio), high * (1 + ratio), f", which allows for {words}"


@claim(
    "Q15",
    "One product for queries, keys and values is faster than three.",
    tested="paired ratio of times over batch and N, extended by what processes may differ",
    study=JoinedProjections,
)
def one_product(run: Measured) -> Iterator[Evidence]:
    for one in run.of(JoinedProjections):
        low, high, allows = extended(one, one.time_low_ratio, one.time_high_ratio)
        of = f"batch {one.batch}, N = {one.seq_len}, d = {one.d_model}"
        text = f"three take {times_text(one.time_ratio, low, high)} the time of one{allows}"
        yield Evidence(of, above(low, high, 1.0), text)


def share_of_output(run: Measured, bound: float) -> Iterator[Evidence]:
    """C16: the share of joining the heads and W_O at the longest N, backend by backend."""
    for of, some in by(run.of(OutputShare), lambda one: one.backend).items():
        one = max(some, key=lambda one: one.seq_len)
        low, high, allows = extended(one, one.share_low_ratio, one.share_high_ratio)
        low, high, share = min(1.0, low), min(1.0, high), one.share_ratio
        text = (
            f"{100 * share:.0f} %{beyond_text(share)} of the layer's time at N = {one.seq_len}"
            f" ({100 * low:.0f} to {100 * high:.0f} %){allows}"
        )
        yield Evidence(of, "not decided" if is_disturbed(one) else above(low, high, bound), text)


@claim(
    "Q16",
    "Generation repeats the pass for every token; a cache saves it.",
    tested=(
        "FLOPs of all steps without a cache over those with one, an exact count, and the ratio of"
        " their times, backend by backend, at the most tokens: both above 1"
    ),
    needs="studies: [generation], kv_seq_len of some hundred",
    study=Generated,
    halves=("FLOPs", "time"),
)
def cache_saves(run: Measured) -> Iterator[Evidence]:
    """A backend whose cached steps are not the full pass saves nothing that can be compared."""
    found = run.of(Generated)
    if found:
        yield _flops([one for one in found if one.backend == found[0].backend])
    for backend, some in timed(found).items():
        yield _time(backend, some)
    for backend, why in complaints(found).items():
        yield Evidence(backend, "not decided", why, half="time")


def _flops(some: Sequence[Generated]) -> Evidence:
    """Without a cache T steps need more, and ever more so. `some`: of one backend."""
    last = max(some, key=lambda one: one.tokens)
    ratio = last.full_total_flops / last.cached_total_flops
    full, cached = (flops_exponent(some, way) for way in ("full", "cached"))
    verdicts = [exactly(ratio > 1)]
    text = f"without a cache {number_text(ratio)} times those with it for"
    text += f" {count_text(last.tokens)} tokens"
    if full is not None and cached is not None:
        verdicts.append(exactly(full > cached))
        text += f"; they grow as T^{full:.1f}, with it as T^{cached:.1f}"
    return Evidence("FLOPs", jointly(verdicts), text, half="FLOPs")


def _time(backend: str, some: Sequence[Generated]) -> Evidence:
    """`some`: by tokens."""
    last = some[-1]
    bounds = (last[f"full_over_cached_total_{end}_ratio"] for end in ("low", "high"))
    low, high, allows = extended(last, *(nan if one is None else one for one in bounds))
    times = times_text(last.full_over_cached_total_ratio, low, high)
    text = f"{count_text(last.tokens)} tokens without a cache take {times} the time of those with"
    text += f" it{allows if isfinite(low) else ''}"
    return Evidence(f"time, {backend}", above(low, high, 1.0), text, half="time")
