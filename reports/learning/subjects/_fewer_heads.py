"""Trained models without some of their heads, and what the smaller layers cost."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from ....harness.learning.findings import TrainedHeads
from ....harness.stats.intervals import Interval
from ...elements import Figure, table_of
from ...quantity import Quantity
from ..figures import Axes, bounded, figure, line
from ..trained import (
    HeadCount,
    LeftCost,
    Order,
    TaskResult,
    costs_over_left,
    losses_over_left,
    rises,
)

DRAWN = 8  # heads of a block
ORDERS: dict[str, Order] = {"by importance": "pruned", "greedily by loss": "greedy"}
Lines = Mapping[str, Mapping[float, Interval]]


LOSS = Axes("heads left", "loss, nats")


def ordered(left: Mapping[float, Interval]) -> dict[float, Interval]:
    return dict(sorted(left.items()))


def fewer(found: Sequence[TaskResult], caption: str) -> Iterator[Figure]:
    counts = [count for one in found for count in one.counts]
    removed = [(count, lines) for count in counts if (lines := _lines(count))]
    if any(count.heads == DRAWN for count, _ in removed):
        yield _pruned(removed, caption)
    if costs := [(count, some) for count in counts if (some := costs_over_left(count))]:
        yield _smaller(costs, caption)


def _lines(count: HeadCount) -> Lines:
    lines = {name: losses_over_left(count, order) for name, order in ORDERS.items()}
    return {name: left for name, left in lines.items() if left}


def _pruned(removed: Sequence[tuple[HeadCount, Lines]], caption: str) -> Figure:
    return figure(
        "Loss over the heads that are left, of 8 per block; the least important go first",
        f"{caption} · chosen on other sequences, by gradient or by trial; not retrained",
        {
            count.task: [
                line(name, ordered({x: loss for x, loss in left.items() if x}))
                for name, left in lines.items()
            ]
            for count, lines in removed
            if count.heads == DRAWN
        },
        LOSS,
        table_of(
            "Without some heads, loss in nats",
            removed,
            {
                "task, heads": lambda one: one[0].label,
                "loss": lambda one: bounded(one[0].loss, least=0.0),
                "rise without one head, median": lambda one: bounded(one[0].mean(_median_rise)),
                "rise, worst head": lambda one: bounded(
                    one[0].mean(lambda training: max(rises(training), default=None))
                ),
                "half left, by importance": lambda one: _halved(one[1].get("by importance", {})),
                "half left, greedily by loss": lambda one: _halved(
                    one[1].get("greedily by loss", {})
                ),
            },
            folded=True,
        ),
        about="a panel per task; by the gradient, or by trial, repeated at every step",
        same_y=False,
        names=ORDERS,
    )


def _median_rise(one: TrainedHeads) -> float | None:
    found = rises(one)
    return median(found) if found else None


def _halved(left: Mapping[float, Interval]) -> Quantity:
    half = max(left, default=0) // 2
    return bounded(left.get(half) if half else None, least=0.0)


def _smaller(found: Sequence[tuple[HeadCount, list[LeftCost]]], caption: str) -> Figure:
    """What layers cost from which the heads' weights are gone, beside the loss without them."""
    halves = [(some[len(some) // 2], some[0]) for _, some in found]
    shares = _least_most([half.time_ratio.value for half, _ in halves])
    peaks = [
        half.peak_bytes / whole.peak_bytes
        for half, whole in halves
        if half.peak_bytes and whole.peak_bytes
    ]
    memory = f" and {_least_most(peaks)} of the memory" if len(peaks) == len(halves) else ""
    return figure(
        "Layers from which the weights of half of the heads are gone take"
        f" {shares} of the time{memory}",
        f"{caption} · all attention layers, forward, 64 sequences; one seed",
        {
            count.task: [line("time", {one.left: one.time_ratio for one in some[-2::-1]})]
            for count, some in found
        },
        Axes("heads left", "time, of the whole", "share"),
        table_of(
            "Loss without some heads, and what the smaller layers take",
            [
                (count, losses_over_left(count, "pruned"), one)
                for count, some in found
                for one in some
            ],
            {
                "task, heads left": lambda one: f"{one[0].task}, {one[2].left}",
                "loss, nats": lambda one: bounded(one[1].get(one[2].left), least=0.0),
                "time of the layers": lambda one: Quantity(one[2].time_ms, "ms"),
                "times that of all heads": lambda one: bounded(one[2].time_ratio),
                "peak memory": lambda one: Quantity(one[2].peak_bytes, "bytes"),
                "weights": lambda one: Quantity(one[2].weight_bytes, "bytes"),
            },
            folded=True,
        ),
        about="a panel per task; the smaller layers compute what the pruned ones do",
    )


def _least_most(shares: Sequence[float]) -> str:
    """`52 % to 61 %`, or one of them."""
    return " to ".join(dict.fromkeys(f"{100 * one:.0f} %" for one in (min(shares), max(shares))))
