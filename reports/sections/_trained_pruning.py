"""Trained models without some of their heads, and what the smaller layers cost."""

from collections.abc import Mapping, Sequence

from ...harness.stats.intervals import Interval
from ..analysis.smaller_layers import LeftCost, costs_over_left
from ..analysis.trained_heads import (
    HeadCount,
    TaskResult,
    losses_over_left,
    single_removals,
    worst_removal,
)
from ..elements import Figure, Panel, Series, Table
from ..formatting import bytes_text, time_text
from ._interval_texts import known, with_range

DRAWN = 8  # heads of a block
ORDERS = {"by importance": "pruned_loss_nats", "greedily by loss": "greedy_loss_nats"}


def loss_over_left(title: str, lines: Mapping[str, Sequence[tuple[int, Interval]]]) -> Panel:
    """The loss with so many heads, for each number of heads that are left; by the line's name."""
    return Panel(
        x_label="heads left",
        y_label="loss, nats",
        unit="plain",
        x_scale="linear",
        y_scale="linear",
        title=title,
        series=tuple(
            Series(
                backend=name,
                kind="measured",
                x=tuple(float(x) for x, _ in points),
                y=tuple(each.value for _, each in points),
                low=tuple(known(each.low) for _, each in points),
                high=tuple(known(each.high) for _, each in points),
            )
            for name, points in lines.items()
        ),
    )


def pruned(found: Sequence[TaskResult], caption: str) -> Figure | None:
    panels, rows = [], []
    for one in found:
        for count in one.counts:
            lines = {
                order: sorted(left.items())[1:]
                for order, name in ORDERS.items()
                if (left := losses_over_left(count, name))
            }
            if count.heads == DRAWN and lines:
                panels.append(loss_over_left(one.task, lines))
            if lines:
                rows.append(
                    (
                        f"{one.task}, {count.heads}",
                        with_range(count.loss, least=0.0),
                        with_range(single_removals(count)),
                        with_range(worst_removal(count)),
                        *(_halved(count, name) for name in ORDERS.values()),
                    )
                )
    if not panels:
        return None
    return Figure(
        title="Loss over the heads that are left, of 8 per block; the least important go first",
        caption=f"{caption} · chosen on other sequences, by gradient or by trial; not retrained",
        description=(
            "The loss over how many heads are left when the least important ones are removed, one"
            " panel per task: by the gradient of the whole decoder, or greedily, by the loss"
            " without each, tried again at every step; of more than 8 heads an eighth goes at a"
            " time. The table has the loss without single heads and without half of them."
        ),
        panels=tuple(panels),
        table=Table(
            title="Without some heads, loss in nats",
            columns=(
                *("task, heads", "loss", "rise without one head, median", "rise, worst head"),
                *("half left, by importance", "half left, greedily by loss"),
            ),
            rows=tuple(rows),
            folded=True,
        ),
        same_y=False,
        names=tuple(ORDERS),
    )


def smaller(found: Sequence[TaskResult], caption: str) -> Figure | None:
    """What layers cost from which the heads' weights are gone, beside the loss without them."""
    panels, rows, halves = [], [], []
    for one in found:
        for count in one.counts:
            costs = costs_over_left(count)
            if not costs:
                continue
            left = sorted(costs, key=lambda each: each.left)[1:]
            halves.append(next(each for each in costs if each.left == costs[0].left // 2))
            panels.append(
                Panel(
                    x_label="heads left",
                    y_label="time, of the whole",
                    unit="share",
                    x_scale="linear",
                    y_scale="linear",
                    title=one.task,
                    series=(
                        Series(
                            backend="time",
                            kind="measured",
                            x=tuple(float(each.left) for each in left),
                            y=tuple(each.time_ratio.value for each in left),
                            low=tuple(known(each.time_ratio.low) for each in left),
                            high=tuple(known(each.time_ratio.high) for each in left),
                        ),
                    ),
                )
            )
            rows += _costs(one.task, count, costs)
    if not panels:
        return None
    return Figure(
        title=(
            "Layers from which the weights of half of the heads are gone take"
            f" {_least_most([each.time_ratio.value for each in halves])} of the time"
            f"{_bytes_of(halves)}"
        ),
        caption=f"{caption} · all attention layers, forward, 64 sequences; one seed",
        description=(
            "The time of the attention layers over how many heads are left, as a share of the time"
            " with all heads, one panel per task. The smaller layers compute what the pruned ones"
            " do. The table has the loss beside time and memory."
        ),
        panels=tuple(panels),
        table=Table(
            title="Loss without some heads, and what the smaller layers take",
            columns=(
                *(
                    "task, heads left",
                    "loss, nats",
                    "time of the layers",
                    "times that of all heads",
                ),
                *("peak memory", "weights"),
            ),
            rows=tuple(rows),
            folded=True,
        ),
    )


def _costs(task: str, count: HeadCount, costs: Sequence[LeftCost]) -> list[tuple[str, ...]]:
    losses = losses_over_left(count, "pruned_loss_nats")
    return [
        (
            f"{task}, {one.left}",
            with_range(losses[one.left], least=0.0) if one.left in losses else "",
            time_text(one.time_ms),
            with_range(one.time_ratio),
            bytes_text(one.peak_bytes),
            bytes_text(one.weight_bytes),
        )
        for one in costs
    ]


def _bytes_of(halves: Sequence[LeftCost]) -> str:
    shares = [one.peak_share for one in halves if one.peak_share is not None]
    return f" and {_least_most(shares)} of the memory" if len(shares) == len(halves) else ""


def _least_most(shares: Sequence[float]) -> str:
    """`52 % to 61 %`, or one of them."""
    return " to ".join(dict.fromkeys(f"{100 * one:.0f} %" for one in (min(shares), max(shares))))


def _halved(count: HeadCount, name: str) -> str:
    left = losses_over_left(count, name)
    half = max(left, default=0) // 2
    return with_range(left[half], least=0.0) if half and half in left else ""
