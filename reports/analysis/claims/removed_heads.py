"""What removed heads cost in quality, in models of the study trained_heads: Q3 and Q19."""

from math import inf, isfinite
from statistics import median

from ....harness.stats.intervals import mean_interval
from ..trained_heads import Finding, HeadCount, TaskResult, by_removed_heads
from ._trained_heads import HEADS, at_most, bounded_percent, on_this_task, statement_on_tasks
from .claim_verdict import Part, by_interval
from .statement import Statement

LIMITED_SHARE = 0.1  # of what all heads are worth, that a removed head may cost


def single_heads(result: TaskResult) -> Part | None:
    """Q3: without one head, of 8 per block, the loss rises little; the median head."""
    count = at_most(result, HEADS)
    shares = [pair for one in (count.trainings if count else ()) if (pair := _lost(one))]
    if count is None or not shares:
        return None
    usual = mean_interval([median(one) for one in shares], "seed")
    worst = mean_interval([max(one) for one in shares], "seed")
    text = (
        f"the median of {count.heads} heads per block is {bounded_percent(usual)} of what all"
        f" are worth, the most important one {bounded_percent(worst, 0)}"
    )
    verdict = by_interval(usual.low, usual.high, (-inf, LIMITED_SHARE))
    return on_this_task(result, verdict, text, count, usual)


def half_the_heads(result: TaskResult) -> Part | None:
    """Q19: without half of the heads, of 8 per block, the loss rises little.

    They are chosen by trial; in rows without that, by the gradient.
    """
    count = at_most(result, HEADS)
    shares = [] if count is None else _lost_by_half(count)
    if count is None or not shares:
        return None
    found = mean_interval(shares, "seed")
    text = (
        f"without half of {count.heads} heads per block the loss rises by"
        f" {bounded_percent(found)} of what all are worth"
    )
    verdict = by_interval(found.low, found.high, (-inf, LIMITED_SHARE))
    return on_this_task(result, verdict, text, count, found)


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


CLAIMS: dict[str, Statement] = {
    "Q3": statement_on_tasks(
        single_heads,
        statement="Removing single heads has little effect.",
        tested=(
            "8 heads per block, one removed: the median rise of the loss is at most 10 % of the"
            " rise without any head"
        ),
    ),
    "Q19": statement_on_tasks(
        half_the_heads,
        statement="Half of the heads can be removed at once with little effect.",
        tested=(
            "8 heads per block, half of them removed, chosen by trial on other sequences, nothing"
            " retrained: the loss rises by at most 10 % of the rise without any head"
        ),
    ),
}
