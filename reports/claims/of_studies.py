"""Quantities of claims from findings of studies. A finding that lacks what one needs is skipped."""

from itertools import pairwise

from ..data.findings import HeadCopy, LayerProperty, ParameterCount, ScoreScale
from ..data.row_groups import by
from ..formatting import bytes_text, number_text, range_text
from .claim import Found, Measured
from .of_rows import Some, exactly


def joined_bytes(run: Measured) -> Some:
    for one in run.of(HeadCopy):
        if one.heads > 1 and one.copied_bytes is not None:
            text = f"{bytes_text(one.copied_bytes)} copied at h = {one.heads}"
            yield exactly(one.layout or one.backend, one.copied_bytes, text)


def parameters(run: Measured) -> Some:
    """With more heads over those with fewer."""
    for rule, some in by(run.of(ParameterCount), lambda one: one.d_k_rule).items():
        for few, many in pairwise(sorted(some, key=lambda one: one.heads)):
            texts = [f"{one.parameter_count} at h = {one.heads}" for one in (few, many)]
            ratio = many.parameter_count / few.parameter_count
            yield exactly(f"d_k {rule}", ratio, ", ".join(texts))


def holding(name: str, run: Measured) -> Some:
    """1 where a property held in every random case, else 0."""
    for one in run.of(LayerProperty):
        if one.property == name:
            text = f"off by at most {number_text(one.worst_error_ratio) or 'unknown'}"
            yield exactly(one.backend or "textbook formula", one.holds, text)


def variance(scaled: int, run: Measured) -> Some:
    """Of the scores, over the expected one.

    Of entries that are drawn with variance 1 it follows, so those prove nothing.
    """
    for one in run.of(ScoreScale):
        if one.scaled == scaled and one.of and (found := one.variance):
            value, low, high = (end / (1 if scaled else one.d_k) for end in found)
            text = f"{number_text(value)} times{range_text(low, high)} at d_k = {one.d_k}"
            yield Found(one.of, low, high, text)
