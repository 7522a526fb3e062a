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
)
from ...harness.stats.intervals import Interval
from ..data.processor_time import in_most
from ..data.row_groups import by
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
from ..subjects.generation import complaints, flops_exponent, timed
from .statement import Measured, Statement, claim
from .verdict import (
    BUSY,
    EQUAL,
    OPPOSITE,
    Evidence,
    above,
    agreed,
    by_interval,
    exactly,
    jointly,
    longer,
    longer_text,
    needed,
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

FORMULA = "textbook formula"  # in float64


def _off(one: LayerProperty | AttentionFact) -> str:
    return f"off by at most {number_text(one.worst_error_ratio) or 'unknown'}"


def properties(name: str, statement: str, *wanted: str) -> Statement:
    """All named properties hold in every case that each backend computed."""
    halves = tuple(one.replace("_", " ") for one in wanted)

    def test(run: Measured) -> Iterator[Evidence]:
        for one in run.of(LayerProperty):
            if one.property in wanted:
                half = one.property.replace("_", " ")
                of = ", ".join(filter(None, (one.backend or FORMULA, half * (len(wanted) > 1))))
                yield Evidence(of, exactly(one.holds), _off(one), half)

    tested = "random cases, in each backend, to within the rounding of its dtype"
    return claim(name, statement, tested=tested, study=LayerProperty, halves=halves)(test)


def facts(name: str, statement: str, tested: str, **of: str) -> Statement:
    """Each statement that the study tried, by what it is tried on."""

    def test(run: Measured) -> Iterator[Evidence]:
        """What torch refuses comes first, since pages name some parts only."""
        for one in sorted(run.of(AttentionFact), key=lambda one: not one.complaint):
            if one.statement in of:
                by_what = one.backend or one.dtype or FORMULA
                on = ", ".join(filter(None, (by_what, of[one.statement])))
                yield Evidence(on, exactly(one.holds), _tried(one))

    return claim(name, statement, tested=tested, study=AttentionFact)(test)


def _tried(one: AttentionFact) -> str:
    if one.complaint:
        return f"torch raises: {one.complaint}"
    share = f"{percent_text(one.holding_ratio)}{beyond_text(one.holding_ratio)}"
    dtype = f" in {one.dtype}" if one.dtype else ""
    return f"in {share} of {one.case_count} random cases{dtype}, {_off(one)}"


C7 = properties(
    "C7",
    "Rows of the weights sum to 1, and outputs lie between the values.",
    *("rows_sum_to_one", "outputs_between_values"),
)
C8 = properties(
    "C8", "Without positions, permuting the inputs permutes the outputs.", "order_permutes_outputs"
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
    outputs_in_hull_of_values="",
)
Q12B = facts(
    "Q12b",
    "... and in that of the inputs.",
    "the same linear program, with W_V between inputs and values",
    outputs_in_hull_of_inputs="",
)
Q13 = facts(
    "Q13",
    "If one score rises, its weight rises and all others fall.",
    "signs of the changes on random cases, in each backend",
    other_weights_fall="",
)
Q17 = facts(
    "Q17",
    "Masking by -1e9 is the same as masking by minus infinity.",
    "weights of random cases in each backend and dtype, with and without rows that see no key",
    fill_equals_infinity="rows that see a key",
    fill_equals_infinity_without_keys="rows that see no key",
)


# ---- scale ---------------------------------------------------------------------------------------

STEADY_RATIO = 0.05  # a gradient that differs by less over d_k does not depend on it
RULES = {"xavier": "Xavier", "normal_1": "N(0, 1)", "normal_0.01": "too small weights"}
WELL_SCALED = (0.1, 10.0)  # a variance that a layer changes by less than ten times


@claim(
    "C5",
    "Without 1/sqrt(d_k) the variance of the scores is d_k, with it 1.",
    tested=(
        "interval of the variance over the expected one within 5 %: of layers at first weights over"
        " d_k, and of the scores behind each backend's weights"
    ),
    study=ScoreScale,
    halves=("without 1/sqrt(d_k)", "with 1/sqrt(d_k)"),
)
def score_scale(run: Measured) -> Iterator[Evidence]:
    """Of entries that are drawn with variance 1 it follows, so those prove nothing."""
    for one in run.of(ScoreScale):
        if one.of and (found := one.bounded("score_variance")):
            wanted = 1.0 if one.scaled else one.d_k
            value, low, high = (end / wanted for end in found[1:])
            text = f"variance {number_text(value)} times {'1' if one.scaled else 'd_k'}"
            text += f"{range_text(low, high)} at d_k = {one.d_k}"
            half = f"{'with' if one.scaled else 'without'} 1/sqrt(d_k)"
            yield Evidence(f"{one.of}, {half}", by_interval(low, high, EQUAL), text, half)


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
        if not one.of and one.scaled is scaled and (known := one.bounded(name))
        for width, value, low, high in [known]
    ]
    return sorted(found, key=lambda pair: pair[0])


@claim(
    "Q14",
    "Xavier initialisation keeps activations and gradients well scaled; N(0, 1) and too small"
    " weights do not.",
    tested=(
        "variance of a layer's outputs and gradients over N, d_model and heads, within ten times"
        " that of its inputs or not"
    ),
    study=Initialisation,
    halves=("Xavier", "N(0, 1)", "too small weights"),
)
def initial_scale(run: Measured) -> Iterator[Evidence]:
    """Over several N: the output is a mean over tokens, so that one N tells nothing."""
    names = ("output_variance", "gradient_variance")
    known = [one for one in run.of(Initialisation) if one.rule in RULES]
    lengths = {one.seq_len for one in known}
    for (rule, n), some in by(known, lambda one: (one.rule, one.seq_len)).items():
        found = [(one[f"{name}_low"], one[f"{name}_high"]) for one in some for name in names]
        scaled = agreed(by_interval(low, high, WELL_SCALED) for low, high in found)
        low, high = min(low for low, _ in found), max(high for _, high in found)
        half = RULES[rule]
        # The statement is that the other rules do worse.
        verdict = scaled if half == "Xavier" else OPPOSITE.get(scaled, scaled)
        text = f"variances of outputs and gradients {number_text(low)} to {number_text(high)}"
        if len(lengths) < 2:
            verdict, text = "not decided", f"{text}; no other N was tried"
        yield Evidence(f"{half}, N = {n}", verdict, text, half)


# ---- times of a study ----------------------------------------------------------------------------


def is_disturbed(one: Timed) -> bool:
    """Whether other work competed for the cores in most blocks, as far as somebody counted."""
    return one.blocks is not None and in_most(one.contended_blocks, one.blocks)


def extended(one: Timed, low: float | None, high: float | None) -> tuple[float, float, str]:
    """The bounds of a ratio that decide, and what they hold, in words.

    Over several processes, those of the finding, NaN while other work disturbed most blocks; of a
    single one extended by what processes may differ.
    """
    bounds = (nan, nan) if low is None or high is None else (low, high)
    if one.processes > 1:
        over = f" in {one.processes} processes"
        return (nan, nan, over + BUSY) if is_disturbed(one) else (*bounds, over)
    ratio, words = Noise().text(one_process=True, other_run=False, disturbed=is_disturbed(one))
    if one.contended_blocks is None or one.blocks is None:  # in rows of earlier versions
        words += " (whether other work disturbed them was not recorded)"
    allows = f", which allows for {words}" if isfinite(bounds[0]) else ""
    return bounds[0] / (1 + ratio), bounds[1] * (1 + ratio), allows


@claim(
    "Q15",
    "One product for queries, keys and values is faster than three.",
    tested=(
        "paired ratio of times over batch and N, in five processes: above 1 (the same within 5 %"
        " refutes it)"
    ),
    study=JoinedProjections,
)
def one_product(run: Measured) -> Iterator[Evidence]:
    for one in run.of(JoinedProjections):
        low, high, how = extended(one, one.time_low_ratio, one.time_high_ratio)
        of = f"batch {one.batch}, N = {one.seq_len}, d = {one.d_model}"
        text = f"three take {times_text(one.time_ratio, low, high)} the time of one{how}"
        verdict = longer(low, high)
        text += longer_text(verdict, one.time_ratio, low, high) if one.processes > 1 else ""
        yield Evidence(of, verdict, text)


@claim(
    "C16",
    "Joining the heads and the output projection become a bottleneck.",
    tested=(
        "their share of the layer's time, in five processes: rises from the shortest to the longest"
        " N"
    ),
    study=OutputShare,
)
def share_of_output(run: Measured) -> Iterator[Evidence]:
    for of, some in by(run.of(OutputShare), lambda one: one.backend).items():
        ends = [pick(some, key=lambda one: one.seq_len) for pick in (min, max)]
        if ends[0].seq_len == ends[1].seq_len:
            continue
        (from_low, from_high, one), (to_low, to_high, other) = (
            extended(one, one.share_low_ratio, one.share_high_ratio) for one in ends
        )
        low, high, how = to_low / from_high, to_high / from_low, max(one, other, key=len)
        shares = [f"{percent_text(one.share_ratio)} at N = {one.seq_len}" for one in ends]
        times = times_text(ends[1].share_ratio / ends[0].share_ratio, low, high)
        yield Evidence(of, above(low, high, 1.0), f"{' and '.join(shares)}, {times} as much{how}")


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
    ends = (last[f"full_over_cached_total_{end}_ratio"] for end in ("low", "high"))
    low, high, how = extended(last, *ends)
    times = times_text(last.full_over_cached_total_ratio, low, high)
    text = f"{count_text(last.tokens)} tokens without a cache take {times} the time of those with"
    verdict = above(low, high, 1.0)
    if last.processes > 1:
        how += needed(verdict, (last.full_over_cached_total_ratio or nan, low, high), (1.0,))
    return Evidence(f"time, {backend}", verdict, f"{text} it{how}", half="time")
