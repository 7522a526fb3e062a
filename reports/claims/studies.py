"""The claims that findings of studies answer: C5 to C9 and C15.

A finding that lacks what a claim needs is skipped.
"""

from collections.abc import Iterator
from itertools import pairwise

from ...harness.rows.findings import (
    HeadCopy,
    LayerProperty,
    ParameterCount,
    ScoreScale,
)
from ..data.row_groups import by
from ..formatting import (
    bytes_text,
    number_text,
    range_text,
)
from .statement import Measured, Statement, claim
from .verdict import (
    EQUAL,
    Evidence,
    by_interval,
    exactly,
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


def _off(one: LayerProperty) -> str:
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


# ---- scale ---------------------------------------------------------------------------------------


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
