"""The claims on what heads learn: Q1 to Q7, Q18 and Q19, of trained models.

A part is a task, or a model. Every verdict on a task holds for it at the size of the study, and
says so.
"""

from collections.abc import Callable, Iterator
from math import inf, isfinite, nextafter
from statistics import fmean, median, variance
from typing import NamedTuple

from ...harness.learning.findings import Order, TrainedHeads
from ...harness.stats.intervals import Interval
from ..claims.statement import Measured, Statement, claim
from ..claims.verdict import ClaimVerdict, Evidence, by_interval, jointly
from ..formatting import list_text, number_text, percent_text, plural, range_text
from .figures import bounded
from .trained import MARGIN_RATIO, HeadCount, Standing, TaskResult, over_seeds, results, spread

HEADS = 8  # where heads of a model are compared with each other
MORE = (nextafter(0, inf), inf)


class Found(NamedTuple):
    """For one task: the number that decides, over seeds, and where it is claimed to be; in words.

    `verdict`: if it does not follow from these.
    """

    by: Interval
    text: str
    claimed: tuple[float, float] = MORE
    verdict: ClaimVerdict | None = None


def on_tasks(
    name: str, statement: str, tested: str
) -> Callable[[Callable[[TaskResult], Found | None]], Statement]:
    """A claim that is tested task by task; None if the models of a task cannot answer."""

    def tested_by(on_task: Callable[[TaskResult], Found | None]) -> Statement:
        def test(run: Measured) -> Iterator[Evidence]:
            for result in results(run.of(TrainedHeads)):
                if (found := on_task(result)) and (seeds := found.by.units):
                    verdict = by_interval(found.by.low, found.by.high, found.claimed)
                    d_model = result.best.trainings[0].d_model
                    where = f" (d_model {d_model}, {plural(seeds, 'seed')})"
                    yield Evidence(result.task, found.verdict or verdict, found.text + where)

        return claim(
            name,
            statement,
            tested=f"{tested}; holds for small decoders trained for minutes",
            needs="studies: [trained_heads], as in the scenario what_heads_learn",
            study=TrainedHeads,
        )(test)

    return tested_by


def on_heads(
    name: str, statement: str, tested: str, heads: int = HEADS
) -> Callable[[Callable[[HeadCount], Found]], Statement]:
    """The same of models with so many heads, or the most below."""
    return lambda test: on_tasks(name, statement, tested)(
        lambda result: test(count) if (count := result.at_most(heads)) else None
    )


def percents(one: Interval) -> str:
    """Of what may be below 0 or above 1."""
    return f"{percent_text(one.value)}{range_text(100 * one.low, 100 * one.high)}"


# ---- patterns ------------------------------------------------------------------------------------

ALIKE_BITS, ALIKE_SHARE = 0.05, 0.9  # Jensen-Shannon below, or CKA above: the heads are alike
VARIES_TIMES = 10  # variance between heads over that within them, from which heads vary a lot


@on_heads(
    "Q1",
    "Heads learn different patterns; some are local, others global.",
    "trained maps of 8 heads: the distance from nearest to farthest head and the difference of"
    " patterns both grow by training, over seeds",
)
def different_patterns(count: HeadCount) -> Found:
    reach, pattern = (
        over_seeds(_change(one, metric, summary) for one in count.trainings)
        for metric, summary in (("distance_tokens", spread), ("pattern_difference", fmean))
    )
    near, far = (count.over_heads("distance_tokens", "after", pick).value for pick in (min, max))
    text = (
        f"{count.heads} heads attend to {number_text(near)} to {number_text(far)} tokens back on"
        f" average; training adds {bounded(reach)} tokens to that range and {bounded(pattern)} bits"
        " to their difference"
    )
    verdict = jointly(by_interval(one.low, one.high, MORE) for one in (reach, pattern))
    return Found(reach, text, verdict=verdict)


def _change(
    one: TrainedHeads, metric: str, summary: Callable[[list[float]], float]
) -> float | None:
    """Of a summary over heads by training."""
    before, after = one.of_heads(metric, "before"), one.of_heads(metric, "after")
    return summary(after) - summary(before) if before and after else None


@on_heads(
    "Q2",
    "Some heads learn similar patterns.",
    "16 heads: at least one has another within 0.05 bits (Jensen-Shannon) or with outputs of CKA"
    " above 0.9, in every seed",
    2 * HEADS,
)
def similar_patterns(count: HeadCount) -> Found:
    shares = [share for one in count.trainings if (share := _twins(one)) is not None]
    found = over_seeds(shares)
    verdict: ClaimVerdict = "not decided"
    if isfinite(found.low) and (all(shares) or not any(shares)):
        verdict = "supported" if all(shares) else "refuted"
    text = (
        f"{percents(found)} of {count.heads} heads have a twin, some in"
        f" {sum(share > 0 for share in shares)} of {plural(len(shares), 'seed')}"
    )
    return Found(found, text, verdict=verdict)


def _twins(one: TrainedHeads) -> float | None:
    """The share of heads whose pattern or output is like another's of their block."""
    patterns = one.of_heads("nearest_difference", "after")
    outputs = one.of_heads("nearest_similarity", "after")
    if not patterns or len(patterns) != len(outputs):
        return None
    pairs = zip(patterns, outputs, strict=True)
    return fmean(bits < ALIKE_BITS or share > ALIKE_SHARE for bits, share in pairs)


@on_heads(
    "Q18",
    "Attention patterns vary greatly between heads.",
    "variance of the mean distance between 8 heads, over that of one head between sequences: at"
    " least 10 times",
)
def heads_vary(count: HeadCount) -> Found:
    found = over_seeds(map(_varies, count.trainings))
    text = (
        f"the variance of the distance between {count.heads} heads is {bounded(found)} times that"
    )
    text += " of a head over sequences"
    return Found(found, text, (VARIES_TIMES, inf))


def _varies(one: TrainedHeads) -> float | None:
    """Variance of the distance between heads over the mean variance within them, over sequences."""
    between = one.of_heads("distance_tokens", "after")
    within = one.of_heads("distance_variance", "after")
    if len(between) < 2 or len(within) != len(between) or not fmean(within) > 0:
        return None
    return variance(between) / fmean(within)


# ---- removed heads -------------------------------------------------------------------------------

LITTLE = (-inf, 0.1)  # of what all heads are worth, that a removed head may cost


@on_heads(
    "Q3",
    "Removing single heads has little effect.",
    "8 heads per block, one removed: the median rise of the loss is at most 10 % of the rise"
    " without any head",
)
def single_heads(count: HeadCount) -> Found:
    shares = [lost for one in count.trainings if (lost := _lost(one))]
    usual, worst = (over_seeds(map(pick, shares)) for pick in (median, max))
    text = (
        f"the median of {count.heads} heads per block is {percents(usual)} of what all"
        f" are worth, the most important one {percents(worst)}"
    )
    return Found(usual, text, LITTLE)


def _lost(one: TrainedHeads) -> list[float]:
    """Of each head, the rise of the loss without it over that without any head; [] if unknown."""
    if one.whole_loss_nats is None or not one.pruned_loss_nats:
        return []
    worth = one.pruned_loss_nats[-1] - one.whole_loss_nats
    return [rise / worth for rise in one.rises_nats] if worth > 0 else []


@on_heads(
    "Q19",
    "Half of the heads can be removed at once with little effect.",
    "8 heads per block, half of them removed, chosen by trial on other sequences, nothing"
    " retrained: the loss rises by at most 10 % of the rise without any head",
)
def half_the_heads(count: HeadCount) -> Found:
    """They are chosen by trial; in rows without that, by the gradient."""
    found = over_seeds(_lost_by_half(count))
    text = (
        f"without half of {count.heads} heads per block the loss rises by"
        f" {percents(found)} of what all are worth"
    )
    return Found(found, text, LITTLE)


def _lost_by_half(count: HeadCount) -> list[float]:
    """Of each seed, the rise of the loss without half of the heads over that without any."""
    orders: tuple[Order, ...] = ("greedy", "pruned")
    for order in orders:
        found = [one.loss_by_removed_heads(order) for one in count.trainings]
        if all(losses and max(losses) // 2 in losses for losses in found):
            gains = [
                (losses[max(losses) // 2] - losses[0], losses[max(losses)] - losses[0])
                for losses in found
            ]
            return [half / worth for half, worth in gains if worth > 0]
    return []


# ---- the number of heads -------------------------------------------------------------------------

FEW, MIDDLE, MANY = (1, 2), (8, 16), (32, 64)
RELATIONS = {"two_relations": 2, "six_relations": 8}
"""Tasks that need several positions at once, and heads that may take one each."""
FINITE = ("text",)  # tasks whose batches come from a text that is seen repeatedly


@on_tasks(
    "Q4",
    "One or two heads are too few, 8 to 16 are best, and more bring little.",
    "accuracy over heads at equal parameters and steps, seed by seed: 1 and 2 worse than the best"
    " by 2 points, 8 or 16 within 2 points of it",
)
def best_number(result: TaskResult) -> Found | None:
    standing = {one.heads: one.standing for one in result.counts}
    if not {*FEW, *MIDDLE, *MANY} <= standing.keys():
        return None
    few, middle = ({standing[heads] for heads in some} for some in (FEW, MIDDLE))
    # More heads than the middle ones are better only if both of these are worse than the best.
    verdicts = [_all_worse(few, "supported", "refuted"), _all_worse(middle, "refuted", "supported")]
    text = f"{result.enough.heads} enough"
    if worse := result.of("worse"):
        text += f", worse than the best: {list_text([str(one) for one in worse])}"
    return Found(result.best.accuracy, text, verdict=jointly(verdicts))


def _all_worse(standings: set[Standing], yes: ClaimVerdict, no: ClaimVerdict) -> ClaimVerdict:
    """`no` if one is as good as the best."""
    if standings & {"best", "equal"}:
        return no
    return yes if standings == {"worse"} else "not decided"


@on_tasks(
    "Q5",
    "With one head, averaging prevents attending to several positions at once.",
    "tasks that need two and six positions: 2 and 8 heads better than one by 2 points, seed by"
    " seed",
)
def one_head_averages(result: TaskResult) -> Found | None:
    one, many = result.exactly(1), result.exactly(RELATIONS.get(result.task, 0))
    if one is None or many is None:
        return None
    gain = many.more(one)
    text = (
        f"{percent_text(one.accuracy.value)} of the answers with one head,"
        f" {percent_text(many.accuracy.value)} with {many.heads}, {percents(gain)} more"
    )
    return Found(gain, text, (MARGIN_RATIO, inf))


@on_tasks(
    "Q6",
    "More heads are less sensitive to noise.",
    "points of accuracy that noise on embedded tokens takes, mean over its levels, one head against"
    " 8, on tasks where both are equally accurate without it",
)
def noise(result: TaskResult) -> Found | None:
    """Who answers little without noise has little to lose."""
    one, many = result.exactly(1), result.exactly(HEADS)
    if one is None or many is None:
        return None
    gap = many.more(one)
    lost = [count.mean("points_lost") for count in (one, many)]
    if not all(each.units for each in lost):
        return None
    text = (
        f"noise takes {number_text(lost[0].value)} points of accuracy with one head,"
        f" {number_text(lost[1].value)} with {HEADS}"
    )
    if not (gap.low >= -MARGIN_RATIO and gap.high <= MARGIN_RATIO):
        text += ", but they may differ without it"
        return Found(gap, text, verdict="not decided")
    saved = one.more(many, "points_lost")
    return Found(saved, f"{text}, {bounded(saved)} fewer")


@on_tasks(
    "Q7",
    "Too many heads overfit.",
    "loss on new text less that on known text, the most heads against one, seed by seed",
)
def too_many_overfit(result: TaskResult) -> Found | None:
    one, most = result.exactly(1), result.counts[-1]
    if result.task not in FINITE or one is None or most is one:
        return None
    grows = most.more(one, "overfit_nats")
    few, many = (number_text(count.mean("overfit_nats").value) for count in (one, most))
    text = f"new less known text: {few} nats with one head, {many} with {most.heads},"
    return Found(grows, f"{text} {bounded(grows)} more")
