"""Trained models without some of their heads, and what the smaller layers cost."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from ....harness.learning.findings import TrainedHeads
from ....harness.stats.intervals import Interval
from ...elements import Figure, Panel, table_of
from ...quantity import Quantity
from ..seeds import bounded, line, panel
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


def loss_over_left(title: str, lines: Lines) -> Panel:
    """The loss over how many heads are left; by the line's name."""
    drawn = [line(name, dict(sorted(left.items()))) for name, left in lines.items()]
    return panel(title, "heads left", "loss, nats", drawn)


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
    return Figure(
        title="Loss over the heads that are left, of 8 per block; the least important go first",
        caption=f"{caption} · chosen on other sequences, by gradient or by trial; not retrained",
        description=(
            "The loss over how many heads are left when the least important ones are removed, one"
            " panel per task: by the gradient of the whole decoder, or greedily, by the loss"
            " without each, tried again at every step; of more than 8 heads an eighth goes at a"
            " time. The table has the loss without single heads and without half of them."
        ),
        panels=tuple(
            loss_over_left(
                count.task,
                {name: {x: loss for x, loss in left.items() if x} for name, left in lines.items()},
            )
            for count, lines in removed
            if count.heads == DRAWN
        ),
        table=table_of(
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
        same_y=False,
        names=tuple(ORDERS),
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
    return Figure(
        title=(
            "Layers from which the weights of half of the heads are gone take"
            f" {shares} of the time{memory}"
        ),
        caption=f"{caption} · all attention layers, forward, 64 sequences; one seed",
        description=(
            "The time of the attention layers over how many heads are left, as a share of the time"
            " with all heads, one panel per task. The smaller layers compute what the pruned ones"
            " do. The table has the loss beside time and memory."
        ),
        panels=tuple(
            panel(
                count.task,
                "heads left",
                "time, of the whole",
                [line("time", {one.left: one.time_ratio for one in some[-2::-1]})],
                "share",
            )
            for count, some in found
        ),
        table=table_of(
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
    )


def _least_most(shares: Sequence[float]) -> str:
    """`52 % to 61 %`, or one of them."""
    return " to ".join(dict.fromkeys(f"{100 * one:.0f} %" for one in (min(shares), max(shares))))
