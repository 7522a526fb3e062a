"""How many heads are best, in models of the study trained_heads: Q4 to Q7."""

from collections.abc import Callable
from math import inf

from ....harness.stats.intervals import Interval, mean_interval
from ...data.run_meta import finite_number
from ...formatting import list_text, number_text
from ..noise_robustness import mean_points_lost, points_lost
from ..trained_heads import (
    MARGIN_RATIO,
    Finding,
    HeadCount,
    TaskResult,
    difference,
    overfit,
)
from ._trained_heads import (
    HEADS,
    bounded,
    bounded_percent,
    exactly,
    on_this_task,
    statement_on_tasks,
)
from .claim_verdict import ClaimVerdict, Part, above, by_interval, jointly
from .statement import Statement

FEW, MIDDLE, MANY = (1, 2), (8, 16), (32, 64)
RELATIONS = {"two_relations": 2, "six_relations": 8}
"""Tasks that need several positions at once, and heads that may take one each."""
FINITE = ("text",)  # tasks whose batches come from a text that is seen repeatedly


def best_number(result: TaskResult) -> Part | None:
    """Q4: 1 and 2 heads are worse, 8 or 16 as good as any, more not better."""
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
    return on_this_task(result, jointly(verdicts), text, result.best, result.best.accuracy)


def one_head_averages(result: TaskResult) -> Part | None:
    """Q5: on tasks with several relations at once a head for each is better than one for all."""
    one, many = exactly(result, 1), exactly(result, RELATIONS.get(result.task, 0))
    if one is None or many is None:
        return None
    gain = difference(one, many, "accuracy_ratio")
    text = (
        f"{100 * one.accuracy.value:.1f} % of the answers with one head,"
        f" {100 * many.accuracy.value:.1f} % with {many.heads}, {bounded_percent(gain)} more"
    )
    verdict = by_interval(gain.low, gain.high, (MARGIN_RATIO, inf))
    return on_this_task(result, verdict, text, many, gain)


def noise(result: TaskResult) -> Part | None:
    """Q6: noise on the embedded tokens takes fewer points with 8 heads than with one.

    Points are means over the levels of noise. Only where both are equally accurate without it: who
    answers little has little to lose.
    """
    one, many = exactly(result, 1), exactly(result, HEADS)
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
        text += ", but they may differ without it"
        return on_this_task(result, "inconclusive", text, many, gap)
    saved = _less(one, many, points_lost)
    text += f", {bounded(saved, 'points')} fewer"
    return on_this_task(result, above(saved.low, saved.high, 0.0), text, many, saved)


def too_many_overfit(result: TaskResult) -> Part | None:
    """Q7: the loss on new text less that on known text grows from 1 to the most heads."""
    one, most = exactly(result, 1), result.counts[-1]
    if result.task not in FINITE or one is None or most is one:
        return None
    grows = _less(most, one, _gap)
    if not grows.units:
        return None
    few, many = overfit(one).value, overfit(most).value
    text = (
        f"new less known text: {number_text(few)} nats with one head,"
        f" {number_text(many)} with {most.heads}, {bounded(grows, 'nats')} more"
    )
    return on_this_task(result, above(grows.low, grows.high, 0.0), text, most, grows)


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


CLAIMS: dict[str, Statement] = {
    "Q4": statement_on_tasks(
        best_number,
        statement="One or two heads are too few, 8 to 16 are best, and more bring little.",
        tested=(
            "accuracy over heads at equal parameters and steps, seed by seed: 1 and 2 worse than"
            " the best by 2 points, 8 or 16 within 2 points of it"
        ),
    ),
    "Q5": statement_on_tasks(
        one_head_averages,
        statement="With one head, averaging prevents attending to several positions at once.",
        tested=(
            "tasks that need two and six positions: 2 and 8 heads better than one by 2 points,"
            " seed by seed"
        ),
    ),
    "Q6": statement_on_tasks(
        noise,
        statement="More heads are less sensitive to noise.",
        tested=(
            "points of accuracy that noise on embedded tokens takes, mean over its levels, one"
            " head against 8, on tasks where both are equally accurate without it"
        ),
    ),
    "Q7": statement_on_tasks(
        too_many_overfit,
        statement="Too many heads overfit.",
        tested=(
            "loss on new text less that on known text, the most heads against one, seed by seed"
        ),
    ),
}
