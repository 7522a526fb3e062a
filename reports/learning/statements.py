"""The claims on what heads learn: Q1 to Q7, Q18 and Q19, of trained models.

A part is a task, or a model. Every verdict on a task holds for it at the size of the study, and
says so.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf, isfinite, isnan, nextafter
from statistics import fmean, median, variance
from typing import NamedTuple

from ...harness.learning.findings import Order, TrainedHeads
from ...harness.stats.intervals import Interval
from ..claims.statement import Measured, Statement, claim
from ..claims.verdict import ClaimVerdict, Evidence, by_interval, jointly, needed
from ..formatting import list_text, number_text, percent_text, plural, range_text
from .figures import bounded, learnt_text, times_text
from .trained import MARGIN_RATIO, WHENS, HeadCount, TaskResult, over_seeds, results

HEADS = 8  # where heads of a model are compared with each other
MORE = (nextafter(0, inf), inf)


class Found(NamedTuple):
    """For one task: the number that decides, over seeds, and where it is claimed to be; in words.

    `verdict`: if it does not follow from these. `half`: of the statement.
    """

    by: Interval
    text: str
    claimed: tuple[float, float] = MORE
    verdict: ClaimVerdict | None = None
    half: str = ""


Judged = Callable[[TaskResult], Iterable[Found]]


def on_tasks(
    name: str, statement: str, tested: str, halves: Sequence[str] = ("",)
) -> Callable[[Judged], Statement]:
    """A claim that is tested task by task; nothing if the models of a task cannot answer."""

    def tested_by(on_task: Judged) -> Statement:
        def test(run: Measured) -> Iterator[Evidence]:
            for result in results(run.of(TrainedHeads)):
                for found in on_task(result):
                    if seeds := found.by.units:
                        verdict = by_interval(found.by.low, found.by.high, found.claimed)
                        d_model = result.counts[0].trainings[0].d_model
                        text = f"{found.text} (d_model {d_model}, {plural(seeds, 'seed')})"
                        if found.verdict is None:
                            ends = (*filter(isfinite, found.claimed),)
                            bounds = (found.by.value, found.by.low, found.by.high)
                            text += needed(verdict, bounds, ends, what="seeds")
                        yield Evidence(result.task, found.verdict or verdict, text, found.half)

        return claim(
            name,
            statement,
            tested=f"{tested}; holds for small decoders trained for minutes",
            needs="studies: [trained_heads], as in the scenario what_heads_learn",
            study=TrainedHeads,
            halves=halves,
        )(test)

    return tested_by


def on_heads(
    name: str, statement: str, tested: str, heads: int = HEADS
) -> Callable[[Callable[[HeadCount], Found]], Statement]:
    """The same of models with so many heads, or the most below."""
    return lambda test: on_tasks(name, statement, tested)(
        lambda result: [test(count)] if (count := result.at_most(heads)) else []
    )


def percents(one: Interval) -> str:
    """Of what may be below 0 or above 1."""
    return f"{percent_text(one.value)}{range_text(100 * one.low, 100 * one.high)}"


# ---- patterns ------------------------------------------------------------------------------------

ALIKE_BITS, ALIKE_SHARE = 0.05, 0.9  # Jensen-Shannon below, or CKA above: the heads are alike
VARIES_TIMES = 10  # variance between heads over that within them, from which heads vary a lot
LOCAL, GLOBAL = (0, 0.5), (1, inf)
"""Mean distance of a local and of a global head, over that of even weights, (n - 1) / 4 tokens."""


@on_heads(
    "Q1",
    "Heads learn different patterns; some are local, others global.",
    "8 heads after training: patterns differ more than before it; the nearest head attends at most"
    " half as far back as even weights would, (n - 1) / 4 tokens, the farthest at least as far",
)
def different_patterns(count: HeadCount) -> Found:
    """A definition of ours: sources name local and broad heads by their maps."""
    pattern = over_seeds(map(_change, count.trainings))
    near, far = (
        over_seeds(_over_even(one, pick) for one in count.trainings) for pick in (min, max)
    )
    text = (
        f"the nearest of {count.heads} heads attends {bounded(near)} times as far back as even"
        f" weights, the farthest {bounded(far)} times; training adds {bounded(pattern)} bits to"
        " their difference"
    )
    verdict = jointly(
        by_interval(one.low, one.high, claimed)
        for one, claimed in ((pattern, MORE), (near, LOCAL), (far, GLOBAL))
    )
    return Found(pattern, text, verdict=verdict)


def _over_even(one: TrainedHeads, pick: Callable[[list[float]], float]) -> float | None:
    """The mean distance of a head after training, over that of even weights."""
    found = one.of_heads("distance_tokens", "after")
    return pick(found) / ((one.tokens - 1) / 4) if found and one.tokens else None


def _change(one: TrainedHeads) -> float | None:
    """Of the mean difference between the patterns of heads, by training."""
    before, after = (one.of_heads("pattern_difference", when) for when in WHENS)
    return fmean(after) - fmean(before) if before and after else None


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

LITTLE = (-inf, 0.1)  # of what all heads are worth, that removed heads may cost
REMOVED_SHARE = 0.4  # of BERT's heads without a noticeable loss; 0.2 in translation


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
    "Two fifths of the heads can be removed at once with little effect.",
    "8 heads per block, two fifths of them removed (rounded down), chosen by trial on other"
    " sequences, nothing retrained: the loss rises by at most 10 % of the rise without any head",
)
def two_fifths(count: HeadCount) -> Found:
    """They are chosen by trial; in rows without that, by the gradient."""
    gone, shares = _lost_without(count, REMOVED_SHARE)
    found = over_seeds(shares)
    text = (
        f"without {gone} of all heads, of {count.heads} per block, the loss rises by"
        f" {percents(found)} of what all are worth"
    )
    return Found(found, text, LITTLE)


def _lost_without(count: HeadCount, share: float) -> tuple[int, list[float]]:
    """How many heads are removed, the most tried within `share`; and of each seed the rise of the
    loss without them over that without any.
    """
    orders: tuple[Order, ...] = ("greedy", "pruned")
    for order in orders:
        found = [one.loss_by_removed_heads(order) for one in count.trainings]
        if all(found) and len({tuple(losses) for losses in found}) == 1:
            every = max(found[0])
            if gone := max(one for one in found[0] if one <= share * every):
                rises = [(losses[gone] - losses[0], losses[every] - losses[0]) for losses in found]
                return gone, [rise / worth for rise, worth in rises if worth > 0]
    return 0, []


# ---- the number of heads -------------------------------------------------------------------------

FEW, MIDDLE = (1, 2), (8, 16)
FEWER_STEPS = 1.25  # times the steps: by less, more heads bring little
MOST_LEARN = 0.5  # of the seeds, from which a number of heads learns a task
TOO_FEW, BEST = "1 and 2 too few", "8 to 16 best"
RELATIONS = {"two_relations": 2, "six_relations": 8}
"""Tasks that need several positions at once, and heads that may take one each."""
REPEATED = ("short_text",)  # tasks whose sequences are all seen many times
OVERFITS_NATS = 0.05  # of the loss on new less on known text


@on_tasks(
    "Q4",
    "One or two heads are too few, 8 to 16 are best, and more bring little.",
    "trained until learnt or to the limit. Too few: surely less than half of the seeds learn with 1"
    " and with 2. Best: no other number takes surely less than 1 / 1.25 of the steps of 8 or 16",
    (TOO_FEW, BEST),
)
def best_number(result: TaskResult) -> Iterator[Found]:
    few, middle = ([result.exactly(heads) for heads in some] for some in (FEW, MIDDLE))
    first = next((one for one in middle if one and one.steps), None)
    known = [one for one in few if one and one.share]
    if first is None or len(known) < len(FEW):
        return
    best = min(filter(None, middle), key=lambda one: one.steps.value if one.steps else inf)
    shares = [one.share for one in known if one.share]
    texts = [f"{plural(one.heads, 'head')}: {learnt_text(one)}" for one in (*known, best)]
    verdict = jointly(by_interval(one.low, one.high, (0, MOST_LEARN)) for one in shares)
    yield Found(shares[0], "; ".join(texts), verdict=verdict, half=TOO_FEW)
    others = [
        (one, times)
        for one in result.counts
        if one.heads not in MIDDLE and (times := one.times_the_steps_of(best))
    ]
    verdict = jointly(by_interval(t.low, t.high, (1 / FEWER_STEPS, inf)) for _, t in others)
    text = list_text([f"{one.heads}: {times_text(times)}" for one, times in others])
    text = f"steps over those of {best.heads} heads: {text}"
    yield Found(others[-1][1], text, verdict=verdict, half=BEST)


@on_tasks(
    "Q5",
    "With one head, averaging prevents attending to several positions at once.",
    "tasks that need two and six positions: supported if no seed with one head learns them within"
    " the limit, surely less than half, and surely most do with 2 and 8; one that does refutes it",
)
def one_head_averages(result: TaskResult) -> Iterator[Found]:
    one, many = result.exactly(1), result.exactly(RELATIONS.get(result.task, 0))
    if one is None or many is None or one.share is None or many.share is None:
        return
    verdict: ClaimVerdict = "not decided"
    if one.learnt_seeds:
        verdict = "refuted"
    elif one.share.high < MOST_LEARN < many.share.low:
        verdict = "supported"
    text = f"one head: {learnt_text(one)}; {many.heads}: {learnt_text(many)}"
    yield Found(one.share, text, verdict=verdict)


@on_tasks(
    "Q6",
    "More heads are less sensitive to noise.",
    "points of accuracy that noise on embedded tokens takes, mean over its levels, one head against"
    " 8, on tasks where both are equally accurate without it",
)
def noise(result: TaskResult) -> Iterator[Found]:
    """Who answers little without noise has little to lose."""
    one, many = result.exactly(1), result.exactly(HEADS)
    if one is None or many is None:
        return
    gap = many.more(one)
    lost = [count.mean("points_lost") for count in (one, many)]
    if not all(each.units for each in lost):
        return
    text = (
        f"noise takes {number_text(lost[0].value)} points of accuracy with one head,"
        f" {number_text(lost[1].value)} with {HEADS}"
    )
    if not (gap.low >= -MARGIN_RATIO and gap.high <= MARGIN_RATIO):
        text += ", but without it they may differ too, which is no test"
        yield Found(gap, text, verdict="not run")
        return
    saved = one.more(many, "points_lost")
    yield Found(saved, f"{text}, {bounded(saved)} fewer")


@on_tasks(
    "Q7",
    "Too many heads overfit.",
    "text so short that it is seen about a hundred times: loss on new less that on known text, the"
    " most heads at least 0.05 nats above one, seed by seed, if any of the two overfits by as much",
)
def too_many_overfit(result: TaskResult) -> Iterator[Found]:
    one, most = result.exactly(1), result.counts[-1]
    if result.task not in REPEATED or one is None or most is one:
        return
    grows = most.more(one, "overfit_nats")
    gaps = [count.mean("overfit_nats") for count in (one, most)]
    few, many = (number_text(gap.value) for gap in gaps)
    text = (
        f"new less known text: {few} nats with one head, {many} with {most.heads},"
        f" {bounded(grows)} more"
    )
    if all(isnan(gap.low) or gap.low <= OVERFITS_NATS for gap in gaps):
        yield Found(grows, f"{text}; neither surely overfits", verdict="not decided")
        return
    yield Found(grows, text, (OVERFITS_NATS, inf))
