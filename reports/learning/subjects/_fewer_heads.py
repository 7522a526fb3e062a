"""Trained models without some of their heads, and what the smaller layers cost."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from ....harness.learning.findings import TrainedHeads
from ....harness.stats.intervals import Interval
from ...elements import Figure, Panel, Table
from ...formatting import bytes_text, time_text
from ..seeds import line, with_range
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


def loss_over_left(title: str, lines: Mapping[str, Mapping[float, Interval]]) -> Panel:
    """The loss over how many heads are left; by the line's name."""
    return Panel(
        x_label="heads left",
        y_label="loss, nats",
        unit="plain",
        x_scale="linear",
        y_scale="linear",
        title=title,
        series=tuple(line(name, dict(sorted(left.items()))) for name, left in lines.items()),
    )


def fewer(found: Sequence[TaskResult], caption: str) -> Iterator[Figure]:
    counts = [count for one in found for count in one.counts]
    removed = [(count, lines) for count in counts if (lines := _lines(count))]
    if any(count.heads == DRAWN for count, _ in removed):
        yield _pruned(removed, caption)
    if costs := [(count, some) for count in counts if (some := costs_over_left(count))]:
        yield _smaller(costs, caption)


def _lines(count: HeadCount) -> dict[str, dict[float, Interval]]:
    lines = {name: losses_over_left(count, order) for name, order in ORDERS.items()}
    return {name: left for name, left in lines.items() if left}


def _pruned(
    removed: Sequence[tuple[HeadCount, dict[str, dict[float, Interval]]]], caption: str
) -> Figure:
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
        table=Table(
            title="Without some heads, loss in nats",
            columns=(
                *("task, heads", "loss", "rise without one head, median", "rise, worst head"),
                *("half left, by importance", "half left, greedily by loss"),
            ),
            rows=tuple(
                (
                    f"{count.task}, {count.heads}",
                    with_range(count.loss, least=0.0),
                    with_range(count.mean(_median_rise)),
                    with_range(count.mean(_worst_rise)),
                    *(_halved(lines.get(name, {})) for name in ORDERS),
                )
                for count, lines in removed
            ),
            folded=True,
        ),
        same_y=False,
        names=tuple(ORDERS),
    )


def _median_rise(one: TrainedHeads) -> float | None:
    found = rises(one)
    return median(found) if found else None


def _worst_rise(one: TrainedHeads) -> float | None:
    return max(rises(one), default=None)


def _halved(left: Mapping[float, Interval]) -> str:
    half = max(left, default=0) // 2
    return with_range(left[half], least=0.0) if half and half in left else ""


def _smaller(found: Sequence[tuple[HeadCount, list[LeftCost]]], caption: str) -> Figure:
    """What layers cost from which the heads' weights are gone, beside the loss without them."""
    halves = [next(one for one in some if one.left == some[0].left // 2) for _, some in found]
    peaks = [one.peak_share for one in halves if one.peak_share is not None]
    memory = f" and {_least_most(peaks)} of the memory" if len(peaks) == len(halves) else ""
    shares = _least_most([one.time_ratio.value for one in halves])
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
            Panel(
                x_label="heads left",
                y_label="time, of the whole",
                unit="share",
                x_scale="linear",
                y_scale="linear",
                title=count.task,
                series=(line("time", {one.left: one.time_ratio for one in some[-2::-1]}),),
            )
            for count, some in found
        ),
        table=Table(
            title="Loss without some heads, and what the smaller layers take",
            columns=(
                *("task, heads left", "loss, nats", "time of the layers"),
                *("times that of all heads", "peak memory", "weights"),
            ),
            rows=tuple(
                (
                    f"{count.task}, {one.left}",
                    with_range(losses_over_left(count, "pruned").get(one.left), least=0.0),
                    time_text(one.time_ms),
                    with_range(one.time_ratio),
                    bytes_text(one.peak_bytes),
                    bytes_text(one.weight_bytes),
                )
                for count, some in found
                for one in some
            ),
            folded=True,
        ),
    )


def _least_most(shares: Sequence[float]) -> str:
    """`52 % to 61 %`, or one of them."""
    return " to ".join(dict.fromkeys(f"{100 * one:.0f} %" for one in (min(shares), max(shares))))
