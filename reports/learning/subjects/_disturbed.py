"""Trained models without some of their heads, what the smaller layers cost; and with noise."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from ....harness.learning.findings import Order
from ....harness.stats.intervals import Interval
from ...elements import Figure, Table, table_of
from ...formatting import plural
from ...quantity import Cell, Quantity
from ..figures import Axes, bounded, figure, percents, right_answers, shares_text
from ..trained import HeadCount, LeftCost, TaskResult, over_seeds

FEW, MANY = 1, 8  # heads that the title on noise compares; of MANY fewer and fewer are left
NOISY = {2, MANY}  # drawn with noise, beside the fewest and the most
ORDERS: dict[str, Order] = {"by importance": "pruned", "greedily by loss": "greedy"}
LOSS = Axes("heads left", "loss, nats")


def fewer(found: Sequence[TaskResult], caption: str) -> Iterator[Figure]:
    counts = [count for one in found for count in one.counts]
    removed = [count for count in counts if any(map(count.losses_over_left, ORDERS.values()))]
    if any(count.heads == MANY for count in removed):
        yield _pruned(removed, caption)
    if costs := [(count, some) for count in counts if (some := count.costs_over_left())]:
        yield _smaller(costs, caption)


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


def _smaller(found: Sequence[tuple[HeadCount, list[LeftCost]]], caption: str) -> Figure:
    """What layers cost from which the heads' weights are gone, beside the loss without them."""
    halves = [(some[len(some) // 2], some[0]) for _, some in found]
    shares = shares_text([half.time_ratio.value for half, _ in halves])
    peaks = [
        half.peak_bytes / whole.peak_bytes
        for half, whole in halves
        if half.peak_bytes and whole.peak_bytes
    ]
    memory = f" and {shares_text(peaks)} of the memory" if len(peaks) == len(halves) else ""
    return figure(
        "Layers from which the weights of half of the heads are gone take"
        f" {shares} of the time{memory}",
        f"{caption} · all attention layers, forward, 64 sequences; one seed",
        {
            count.task: {"time": {one.left: one.time_ratio for one in some if one.left}}
            for count, some in found
        },
        Axes("heads left", "time, of the whole", "share"),
        table_of(
            "Loss without some heads, and what the smaller layers take",
            [(of, of.losses_over_left("pruned"), one) for of, some in found for one in some],
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


# ---- with noise ----------------------------------------------------------------------------------


def noisy(found: Sequence[TaskResult], caption: str) -> Figure | Table:
    """Accuracy over the level of noise, a line per number of heads; the table alone without it."""
    counts = [count for one in found for count in one.counts]
    every, table = {count.heads for count in counts}, _with_noise(counts)
    drawn = sorted({min(every), max(every)} | (NOISY & every))
    panels = {
        one.task: {
            plural(count.heads, "head"): points
            for count in one.counts
            if count.heads in drawn and (points := count.accuracy_over_noise())
        }
        for one in found
    }
    if not any(panels.values()):
        return table
    return figure(
        _finding(counts),
        f"{caption} · noise in standard deviations of the embedded tokens",
        {task: lines for task, lines in panels.items() if lines},
        right_answers("noise"),
        table,
        names=[plural(heads, "head") for heads in drawn],
    )


def _finding(counts: Sequence[HeadCount]) -> str:
    """`Right answers with noise of 2 standard deviations: 1 head, 2 % to 68 %; 8 heads, ...`."""
    level = max(_levels(counts))
    texts = []
    for heads in (FEW, MANY):
        noisy = [count.accuracy_over_noise() for count in counts if count.heads == heads]
        if shares := [points[level].value for points in noisy if level in points]:
            texts.append(f"{plural(heads, 'head')}, {shares_text(shares)}")
    where = f"Right answers with noise of {level:g} standard deviation{'' if level == 1 else 's'}"
    return ": ".join(filter(None, (where, "; ".join(texts))))


def _levels(counts: Sequence[HeadCount]) -> list[float]:
    """All levels above 0."""
    return sorted({level for count in counts for level in count.accuracy_over_noise()} - {0.0})


def _with_noise(counts: Sequence[HeadCount]) -> Table:
    def at(level: float, one: HeadCount) -> Cell:
        found = one.accuracy_over_noise()
        return percents(found[level]) if level in found else ""

    return table_of(
        "Right answers with noise on the embedded tokens, and loss on sequences that were"
        " trained on",
        counts,
        {
            "task, heads": lambda one: one.label,
            "right answers": lambda one: percents(one.accuracy),
            **{f"noise {level:g}": partial(at, level) for level in _levels(counts)},
            "points lost, mean": lambda one: bounded(one.mean("points_lost")),
            "loss, held-out less known, nats": lambda one: bounded(one.mean("overfit_nats")),
        },
        folded=True,
    )
