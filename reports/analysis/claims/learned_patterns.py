"""What patterns heads learn, in models of the study trained_heads: Q1, Q2 and Q18."""

from collections.abc import Callable
from math import inf, isfinite
from statistics import fmean, variance

from ....harness.stats.intervals import Interval, mean_interval
from ...formatting import number_text, plural, range_text
from ..trained_heads import Finding, HeadCount, TaskResult, of_heads
from ._trained_heads import (
    HEADS,
    at_most,
    bounded,
    bounded_percent,
    on_this_task,
    statement_on_tasks,
)
from .claim_verdict import ClaimVerdict, Part, above, by_interval, jointly
from .statement import Statement

ALIKE_BITS, ALIKE_SHARE = 0.05, 0.9  # Jensen-Shannon below, or CKA above: the heads are alike
VARIES_TIMES = 10  # variance between heads over that within them, from which heads vary a lot


def different_patterns(result: TaskResult) -> Part | None:
    """Q1: after training heads differ more in distance and in pattern than before."""
    count = at_most(result, HEADS)
    if count is None:
        return None
    spread = _change(count, "distance_tokens", lambda values: max(values) - min(values))
    pattern = _change(count, "pattern_difference", fmean)
    ends = [_mean(count, "distance_tokens", pick) for pick in (min, max)]
    text = (
        f"{count.heads} heads attend to {number_text(ends[0])} to {number_text(ends[1])} tokens"
        f" back on average; training adds {bounded(spread, 'tokens')} to that range and"
        f" {bounded(pattern, 'bits')} to their difference"
    )
    verdicts = [above(one.low, one.high, 0.0) for one in (spread, pattern)]
    return on_this_task(result, jointly(verdicts), text, count, spread)


def similar_patterns(result: TaskResult) -> Part | None:
    """Q2: some heads have a twin, in their pattern or in their output."""
    count = at_most(result, 2 * HEADS) or at_most(result, HEADS)
    if count is None:
        return None
    shares = [share for one in count.trainings if (share := _twins(one)) is not None]
    if not shares:
        return None
    found = mean_interval(shares, "seed")
    verdict: ClaimVerdict = "inconclusive"
    if isfinite(found.low):
        verdict = "refuted" if max(shares) == 0 else "inconclusive"
        verdict = "supported" if min(shares) > 0 else verdict
    text = (
        f"{bounded_percent(found, 0)} of {count.heads} heads have a twin, some in"
        f" {sum(share > 0 for share in shares)} of {plural(len(shares), 'seed')}"
    )
    return on_this_task(result, verdict, text, count, found)


def heads_vary(result: TaskResult) -> Part | None:
    """Q18: mean distances vary between heads many times as much as one head's over sequences."""
    count = at_most(result, HEADS)
    known = (_varies(one) for one in (count.trainings if count else ()))
    ratios = [ratio for ratio in known if ratio is not None]
    if count is None or not ratios:
        return None
    found = mean_interval(ratios, "seed")
    text = (
        f"the variance of the distance between {count.heads} heads is"
        f" {number_text(found.value)} times{range_text(found.low, found.high)} that of a head"
        " over sequences"
    )
    verdict = by_interval(found.low, found.high, (VARIES_TIMES, inf))
    return on_this_task(result, verdict, text, count, found)


def _change(count: HeadCount, metric: str, summary: Callable[[list[float]], float]) -> Interval:
    """Of a summary over heads by training, seed by seed."""
    pairs = [
        [of_heads(one, metric, when) for when in ("before", "after")] for one in count.trainings
    ]
    return mean_interval(
        [summary(after) - summary(before) for before, after in pairs if before and after], "seed"
    )


def _mean(count: HeadCount, metric: str, summary: Callable[[list[float]], float]) -> float:
    values = [found for one in count.trainings if (found := of_heads(one, metric, "after"))]
    return fmean(summary(found) for found in values) if values else 0.0


def _twins(one: Finding) -> float | None:
    """The share of heads whose pattern or output is like another's of their block."""
    patterns = of_heads(one, "nearest_difference", "after")
    outputs = of_heads(one, "nearest_similarity", "after")
    if not patterns or len(patterns) != len(outputs):
        return None
    return fmean(
        bits < ALIKE_BITS or share > ALIKE_SHARE
        for bits, share in zip(patterns, outputs, strict=True)
    )


def _varies(one: Finding) -> float | None:
    """Variance of the distance between heads over the mean variance within them, over sequences."""
    between = of_heads(one, "distance_tokens", "after")
    within = of_heads(one, "distance_variance", "after")
    if len(between) < 2 or len(within) != len(between) or not fmean(within) > 0:
        return None
    return variance(between) / fmean(within)


CLAIMS: dict[str, Statement] = {
    "Q1": statement_on_tasks(
        different_patterns,
        statement="Heads learn different patterns; some are local, others global.",
        tested=(
            "trained maps of 8 heads: the distance from nearest to farthest head and the"
            " difference of patterns both grow by training, over seeds"
        ),
    ),
    "Q2": statement_on_tasks(
        similar_patterns,
        statement="Some heads learn similar patterns.",
        tested=(
            "16 heads: at least one has another within 0.05 bits (Jensen-Shannon) or with outputs"
            " of CKA above 0.9, in every seed"
        ),
    ),
    "Q18": statement_on_tasks(
        heads_vary,
        statement="Attention patterns vary greatly between heads.",
        tested=(
            "variance of the mean distance between 8 heads, over that of one head between"
            " sequences: at least 10 times"
        ),
    ),
}
