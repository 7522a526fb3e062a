"""Trained models with noise on the embedded tokens, and on sequences they were trained on."""

from collections.abc import Callable, Sequence

from ...elements import Figure, Table, table_of
from ...formatting import plural
from ...quantity import Cell
from ..figures import bounded, figure, line, percent, percents, right_answers
from ..trained import HeadCount, TaskResult, accuracy_over_noise, overfit, points_lost

FEW, MANY = 1, 8  # heads that the title compares
DRAWN = {2, MANY}  # beside the fewest and the most


def noisy(found: Sequence[TaskResult], caption: str) -> Figure | Table:
    """Accuracy over the level of noise, a line per number of heads; the table alone without it."""
    counts = [count for one in found for count in one.counts]
    every = {count.heads for count in counts}
    drawn = sorted({min(every), max(every)} | (DRAWN & every))
    lines = {
        one.task: {
            count.heads: points
            for count in one.counts
            if count.heads in drawn and (points := accuracy_over_noise(count))
        }
        for one in found
    }
    table = _table(counts)
    if not any(lines.values()):
        return table
    return figure(
        _finding(counts),
        f"{caption} · noise in standard deviations of the embedded tokens",
        {
            task: [
                line(plural(heads, "head"), points, of_shares=True)
                for heads, points in some.items()
            ]
            for task, some in lines.items()
            if some
        },
        right_answers("noise"),
        table,
        about="a panel per task, a line per number of heads, with intervals over seeds",
        names=[plural(heads, "head") for heads in drawn],
    )


def _finding(counts: Sequence[HeadCount]) -> str:
    """`Right answers with noise of 2 standard deviations: 1 head, 1.9 % (six_relations) to 68.3 %
    (majority); 8 heads, ...`.
    """
    level = max(_levels(counts))
    texts = []
    for heads in (FEW, MANY):
        shares = [
            (points[level].value, count.task)
            for count in counts
            if count.heads == heads and level in (points := accuracy_over_noise(count))
        ]
        if shares:
            (low, least), (high, most) = min(shares), max(shares)
            between = f"{percent(low)} ({least})"
            between += f" to {percent(high)} ({most})" if most != least else ""
            texts.append(f"{plural(heads, 'head')}, {between}")
    where = f"Right answers with noise of {level:g} standard deviation{'' if level == 1 else 's'}"
    return ": ".join(filter(None, (where, "; ".join(texts))))


def _levels(counts: Sequence[HeadCount]) -> list[float]:
    """All levels above 0."""
    return sorted({level for count in counts for level in accuracy_over_noise(count)} - {0.0})


def _table(counts: Sequence[HeadCount]) -> Table:
    def at(level: float) -> Callable[[HeadCount], Cell]:
        return lambda one: (
            percents(found[level]) if level in (found := accuracy_over_noise(one)) else ""
        )

    return table_of(
        "Right answers with noise on the embedded tokens, and loss on sequences that were"
        " trained on",
        counts,
        {
            "task, heads": lambda one: one.label,
            "right answers": lambda one: percents(one.accuracy),
            **{f"noise {level:g}": at(level) for level in _levels(counts)},
            "points lost, mean": lambda one: bounded(one.mean(points_lost)),
            "loss, held-out less known, nats": lambda one: bounded(one.mean(overfit)),
        },
        folded=True,
    )
