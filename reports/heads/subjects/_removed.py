"""Trained models without some of their heads."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from ....harness.heads.findings import Order
from ....harness.stats.intervals import Interval
from ...elements import Figure, table_of
from ...quantity import Quantity
from ..figures import Axes, bounded, figure
from ..trained import HeadCount, TaskResult, over_seeds

MANY = 8  # heads of which fewer and fewer are left
ORDERS: dict[str, Order] = {"by importance": "pruned", "greedily by loss": "greedy"}
LOSS = Axes("heads left", "loss, nats")


def fewer(found: Sequence[TaskResult], caption: str) -> Iterator[Figure]:
    counts = [count for one in found for count in one.counts]
    removed = [count for count in counts if any(map(count.losses_over_left, ORDERS.values()))]
    if any(count.heads == MANY for count in removed):
        yield _pruned(removed, caption)


def _pruned(removed: Sequence[HeadCount], caption: str) -> Figure:
    return figure(
        "Loss over the heads that are left, of 8 per block; the least important go first",
        f"{caption} · chosen on other sequences, by gradient or by trial; not retrained",
        {
            count.task: {
                name: {x: loss for x, loss in left.items() if x}
                for name, order in ORDERS.items()
                if (left := count.losses_over_left(order))
            }
            for count in removed
            if count.heads == MANY
        },
        LOSS,
        table_of(
            "Without some heads, loss in nats",
            removed,
            {
                "task, heads": lambda one: one.label,
                "loss": lambda one: bounded(one.loss, least=0.0),
                "rise without one head, median": lambda one: bounded(_rise(one, median)),
                "rise, worst head": lambda one: bounded(_rise(one, max)),
                **{f"half left, {name}": partial(_halved, order) for name, order in ORDERS.items()},
            },
            folded=True,
        ),
        same_y=False,
        names=ORDERS,
    )


def _rise(count: HeadCount, summary: Callable[[list[float]], float]) -> Interval:
    """Of the loss in nats, of all heads that were removed alone."""
    return over_seeds(summary(one.rises_nats) for one in count.trainings if one.rises_nats)


def _halved(order: Order, count: HeadCount) -> Quantity:
    left = count.losses_over_left(order)
    half = max(left, default=0) // 2
    return bounded(left.get(half) if half else None, least=0.0)
