"""The claims on what heads learn, from the study trained_heads: Q1 to Q7, Q18 and Q19.

A part is a task. Every verdict holds for that task, at the size of the study, and says so.
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite
from statistics import fmean, median, variance
from typing import Any

from ....harness.stats import Interval, mean_interval
from ...data.run_meta import finite_number
from ...formatting import list_text, number_text, plural, range_text
from ..noise_robustness import mean_points_lost, points_lost
from ..trained_heads import (
    MARGIN_RATIO,
    Finding,
    HeadCount,
    TaskResult,
    by_removed_heads,
    difference,
    of_heads,
    overfit,
    results,
)
from .claim_verdict import ClaimVerdict, Part, by_interval, jointly

HEADS = 8  # where heads of a model are compared with each other
FEW, MIDDLE, MANY = (1, 2), (8, 16), (32, 64)
ALIKE_BITS, ALIKE_SHARE = 0.05, 0.9  # Jensen-Shannon below, or CKA above: the heads are alike
LIMITED_SHARE = 0.1  # of what all heads are worth, that a removed head may cost
VARIES_TIMES = 10  # variance between heads over that within them, from which heads vary a lot
RELATIONS = {"two_relations": 2, "six_relations": 8}
"""Tasks that need several positions at once, and heads that may take one each."""
FINITE = ("text",)  # tasks whose batches come from a text that is seen repeatedly


def _per_task(findings: Sequence[Any], part: Callable[[TaskResult], Part | None]) -> list[Part]:
    found = (part(one) for one in results({"studies": list(findings)}))
    return [one for one in found if one is not None]


def different_patterns(findings: Sequence[Any]) -> list[Part]:
    """Q1: after training heads differ more in distance and in pattern than before."""

    def of(result: TaskResult) -> Part | None:
        count = _at(result, HEADS)
        if count is None:
            return None
        spread = _change(count, "distance_tokens", lambda values: max(values) - min(values))
        pattern = _change(count, "pattern_difference", fmean)
        ends = [_mean(count, "distance_tokens", pick) for pick in (min, max)]
        text = (
            f"{count.heads} heads attend to {number_text(ends[0])} to {number_text(ends[1])} tokens"
            f" back on average; training adds {_of(spread, 'tokens')} to that range and"
            f" {_of(pattern, 'bits')} to their difference"
        )
        verdicts = [by_interval(one.low, one.high, (0.0, inf)) for one in (spread, pattern)]
        return _part(result, jointly(verdicts), text, count)

    return _per_task(findings, of)


def similar_patterns(findings: Sequence[Any]) -> list[Part]:
    """Q2: some heads have a twin, in their pattern or in their output."""

    def of(result: TaskResult) -> Part | None:
        count = _at(result, 2 * HEADS) or _at(result, HEADS)
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
            f"{_percent(found, 0)} of {count.heads} heads have a twin, some in"
            f" {sum(share > 0 for share in shares)} of {plural(len(shares), 'seed')}"
        )
        return _part(result, verdict, text, count)

    return _per_task(findings, of)


def single_heads(findings: Sequence[Any]) -> list[Part]:
    """Q3: without one head, of 8 per block, the loss rises little; the median head."""

    def of(result: TaskResult) -> Part | None:
        count = _at(result, HEADS)
        shares = [pair for one in (count.trainings if count else ()) if (pair := _lost(one))]
        if count is None or not shares:
            return None
        usual = mean_interval([median(one) for one in shares], "seed")
        worst = mean_interval([max(one) for one in shares], "seed")
        text = (
            f"the median of {count.heads} heads per block is {_percent(usual)} of what all"
            f" are worth, the most important one {_percent(worst, 0)}"
        )
        verdict = by_interval(usual.low, usual.high, (-inf, LIMITED_SHARE))
        return _part(result, verdict, text, count)

    return _per_task(findings, of)


def half_the_heads(findings: Sequence[Any]) -> list[Part]:
    """Q19: without half of the heads, of 8 per block, the loss rises little.

    They are chosen by trial; in rows without that, by the gradient.
    """

    def of(result: TaskResult) -> Part | None:
        count = _at(result, HEADS)
        shares = [] if count is None else _lost_by_half(count)
        if count is None or not shares:
            return None
        found = mean_interval(shares, "seed")
        text = (
            f"without half of {count.heads} heads per block the loss rises by"
            f" {_percent(found)} of what all are worth"
        )
        verdict = by_interval(found.low, found.high, (-inf, LIMITED_SHARE))
        return _part(result, verdict, text, count)

    return _per_task(findings, of)


def best_number(findings: Sequence[Any]) -> list[Part]:
    """Q4: 1 and 2 heads are worse, 8 or 16 as good as any, more not better."""

    def of(result: TaskResult) -> Part | None:
        standing = {one.heads: one.standing for one in result.counts}
        if not {*FEW, *MIDDLE, *MANY} <= standing.keys():
            return None
        good = ("best", "equal")
        few = [standing[heads] for heads in FEW]
        middle = [standing[heads] for heads in MIDDLE]
        verdicts: list[ClaimVerdict] = [
            "refuted"
            if set(few) & set(good)
            else "supported"
            if set(few) == {"worse"}
            else "inconclusive",
            # More heads than these are better only if both are worse than the best.
            "supported"
            if set(middle) & set(good)
            else "refuted"
            if set(middle) == {"worse"}
            else "inconclusive",
        ]
        worse = result.of("worse")
        text = f"{result.enough.heads} enough"
        text += f", worse than the best: {list_text([str(one) for one in worse])}" if worse else ""
        return _part(result, jointly(verdicts), text, result.best)

    return _per_task(findings, of)


def one_head_averages(findings: Sequence[Any]) -> list[Part]:
    """Q5: on tasks with several relations at once a head for each is better than one for all."""

    def of(result: TaskResult) -> Part | None:
        one, many = _exactly(result, 1), _exactly(result, RELATIONS.get(result.task, 0))
        if one is None or many is None:
            return None
        gain = difference(one, many, "accuracy_ratio")
        text = (
            f"{100 * one.accuracy.value:.1f} % of the answers with one head,"
            f" {100 * many.accuracy.value:.1f} % with {many.heads}, {_percent(gain)} more"
        )
        return _part(result, by_interval(gain.low, gain.high, (MARGIN_RATIO, inf)), text, many)

    return _per_task(findings, of)


def noise(findings: Sequence[Any]) -> list[Part]:
    """Q6: noise on the embedded tokens takes fewer points with 8 heads than with one.

    Points are means over the levels of noise. Only where both are equally accurate without it: who
    answers little has little to lose.
    """

    def of(result: TaskResult) -> Part | None:
        one, many = _exactly(result, 1), _exactly(result, HEADS)
        if one is None or many is None:
            return None
        gap = difference(one, many, "accuracy_ratio")
        lost = [mean_points_lost(count) for count in (one, many)]
        if not lost[0].units or not lost[1].units:
            return None
        text = (
            f"noise takes {number_text(lost[0].value)} points of accuracy with one head,"
            f" {number_text(lost[1].value)} with {HEADS}"
        )
        if not (gap.low >= -MARGIN_RATIO and gap.high <= MARGIN_RATIO):
            return _part(result, "inconclusive", f"{text}, but they may differ without it", many)
        saved = _less(one, many, points_lost)
        text += f", {_of(saved, 'points')} fewer"
        return _part(result, by_interval(saved.low, saved.high, (0.0, inf)), text, many)

    return _per_task(findings, of)


def too_many_overfit(findings: Sequence[Any]) -> list[Part]:
    """Q7: the loss on new text less that on known text grows from 1 to the most heads."""

    def of(result: TaskResult) -> Part | None:
        one, most = _exactly(result, 1), result.counts[-1]
        if result.task not in FINITE or one is None or most is one:
            return None
        grows = _less(most, one, _gap)
        if not grows.units:
            return None
        few, many = overfit(one).value, overfit(most).value
        text = (
            f"new less known text: {number_text(few)} nats with one head,"
            f" {number_text(many)} with {most.heads}, {_of(grows, 'nats')} more"
        )
        return _part(result, by_interval(grows.low, grows.high, (0.0, inf)), text, most)

    return _per_task(findings, of)


def heads_vary(findings: Sequence[Any]) -> list[Part]:
    """Q18: mean distances vary between heads many times as much as one head's over sequences."""

    def of(result: TaskResult) -> Part | None:
        count = _at(result, HEADS)
        ratios = [ratio for one in (count.trainings if count else ()) if (ratio := _varies(one))]
        if count is None or not ratios:
            return None
        found = mean_interval(ratios, "seed")
        text = (
            f"the variance of the distance between {count.heads} heads is"
            f" {number_text(found.value)} times{range_text(found.low, found.high)} that of a head"
            " over sequences"
        )
        return _part(result, by_interval(found.low, found.high, (VARIES_TIMES, inf)), text, count)

    return _per_task(findings, of)


# ---- helpers -------------------------------------------------------------------------------------


def _part(result: TaskResult, verdict: ClaimVerdict, text: str, count: HeadCount) -> Part:
    """With on what it holds."""
    sizes = count.trainings[0]
    where = f"d_model {sizes.get('d_model')}, {len(count.trainings)} seeds"
    return Part(of=result.task, verdict=verdict, numbers=f"{text} ({where})")


def _exactly(result: TaskResult, heads: int) -> HeadCount | None:
    return next((one for one in result.counts if one.heads == heads), None)


def _at(result: TaskResult, heads: int) -> HeadCount | None:
    """With so many heads, else with the most below, if they are two at least."""
    fits = [one for one in result.counts if 2 <= one.heads <= heads]
    return fits[-1] if fits else None


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


def _of(one: Interval, unit: str) -> str:
    """`0.21 bits (0.18 to 0.24)`."""
    return f"{number_text(one.value)} {unit}{range_text(one.low, one.high)}"


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


def _lost(one: Finding) -> list[float]:
    """Of each head, the rise of the loss without it over that without any head; [] if unknown."""
    single, pruned = one.get("single_loss_nats"), one.get("pruned_loss_nats")
    whole = one.get("whole_loss_nats")
    if not isinstance(single, list) or not isinstance(pruned, list) or not pruned:
        return []
    losses = [value for block in single if isinstance(block, list) for value in block]
    values = [*losses, pruned[-1], whole]
    if not losses or not all(type(value) in (int, float) and isfinite(value) for value in values):
        return []
    worth = pruned[-1] - whole
    return [(value - whole) / worth for value in losses] if worth > 0 else []


def _lost_by_half(count: HeadCount) -> list[float]:
    """Of each seed, the rise of the loss without half of the heads over that without any."""
    for name in ("greedy_loss_nats", "pruned_loss_nats"):
        found = [by_removed_heads(one, name) for one in count.trainings]
        if all(losses and max(losses) // 2 in losses for losses in found):
            rises = [
                (losses[max(losses) // 2] - losses[0], losses[max(losses)] - losses[0])
                for losses in found
            ]
            return [half / worth for half, worth in rises if worth > 0]
    return []


def _percent(one: Interval, digits: int = 1) -> str:
    return f"{100 * one.value:.{digits}f} %{range_text(100 * one.low, 100 * one.high)}"


def _varies(one: Finding) -> float | None:
    """Variance of the distance between heads over the mean variance within them, over sequences."""
    between = of_heads(one, "distance_tokens", "after")
    within = of_heads(one, "distance_variance", "after")
    if len(between) < 2 or len(within) != len(between) or not fmean(within) > 0:
        return None
    return variance(between) / fmean(within)


def _gap(one: Finding) -> float | None:
    """Loss on new text less that on known text."""
    new, known = finite_number(one, "loss_nats"), finite_number(one, "seen_loss_nats")
    return None if new is None or known is None else new - known


def _less(one: HeadCount, other: HeadCount, number: Callable[[Finding], float | None]) -> Interval:
    """A number of one less that of the other, of the seeds for which both have it."""
    own, others = (
        {training["train_seed"]: number(training) for training in count.trainings}
        for count in (one, other)
    )
    pairs = ((own[seed], others[seed]) for seed in own if seed in others)
    return mean_interval([a - b for a, b in pairs if a is not None and b is not None], "seed")
