"""Trained models without some of their heads, with noise, and on sequences they were trained on."""

from collections.abc import Sequence

from ..analysis.trained_heads import (
    HeadCount,
    TaskResult,
    losses_over_left,
    noisy_loss_of_accuracy,
    overfit,
    single_removals,
    worst_removal,
)
from ..elements import Figure, Panel, Series, Table
from ..formatting import number_text
from ._interval_texts import known, percents, with_range

DRAWN = 8  # heads of a block


def pruned(found: Sequence[TaskResult], caption: str) -> Figure | None:
    panels, rows = [], []
    for one in found:
        for count in one.counts:
            if count.heads == DRAWN and (left := losses_over_left(count, "pruned_loss_nats")):
                points = sorted(left.items())[1:]
                panels.append(
                    Panel(
                        x_label="heads left",
                        y_label="loss, nats",
                        unit="plain",
                        x_scale="linear",
                        y_scale="linear",
                        title=one.task,
                        series=(
                            Series(
                                backend="loss",
                                kind="measured",
                                x=tuple(float(x) for x, _ in points),
                                y=tuple(each.value for _, each in points),
                                low=tuple(known(each.low) for _, each in points),
                                high=tuple(known(each.high) for _, each in points),
                            ),
                        ),
                    )
                )
            single = single_removals(count)
            if single.units:
                rows.append(
                    (
                        f"{one.task}, {count.heads}",
                        with_range(count.loss, least=0.0),
                        with_range(single),
                        with_range(worst_removal(count)),
                        _halved(count, "pruned_loss_nats"),
                        _halved(count, "greedy_loss_nats"),
                    )
                )
    if not panels:
        return None
    return Figure(
        title="Loss over the heads that are left, of 8 per block; the least important go first",
        caption=f"{caption} · importance by gradient on other sequences; not retrained",
        description=(
            "The loss over how many heads are left when the least important ones are removed, one"
            " panel per task. The table has the loss without single heads and without half of them."
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
    )


def _halved(count: HeadCount, name: str) -> str:
    left = losses_over_left(count, name)
    half = max(left, default=0) // 2
    return with_range(left[half], least=0.0) if half else ""


def robust(found: Sequence[TaskResult]) -> Table:
    rows = [
        (
            f"{one.task}, {count.heads}",
            percents(count.accuracy),
            with_range(noisy_loss_of_accuracy(count)),
            with_range(overfit(count)),
        )
        for one in found
        for count in one.counts
    ]
    noise = found[0].counts[0].trainings[0].get("noise_ratio")
    return Table(
        title=(
            f"With noise of {number_text(noise)} standard deviations on the embedded tokens, and on"
            " sequences that were trained on"
        ),
        columns=(
            *("task, heads", "right answers", "points lost to noise"),
            "loss on held-out less on known sequences, nats",
        ),
        rows=tuple(rows),
        folded=True,
    )
