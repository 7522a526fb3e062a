"""Trained models with noise on the embedded tokens, and on sequences they were trained on."""

from collections.abc import Sequence

from ...elements import Figure, Table
from ...formatting import plural
from ..seeds import line, percent, percents, right_answers, with_range
from ..trained import TaskResult, accuracy_over_noise, overfit, points_lost

MOST_LINES = 4  # of a panel: numbers of heads, from the fewest to the most
FEW, MANY = 1, 8  # heads that the title compares


def noisy(found: Sequence[TaskResult], caption: str) -> Figure | Table:
    """Accuracy over the level of noise, a line per number of heads; the table alone without it."""
    drawn = _spread_out(sorted({count.heads for one in found for count in one.counts}))
    panels = [
        right_answers(
            one.task,
            "noise",
            [
                line(plural(count.heads, "head"), points, of_shares=True)
                for count, points in some
                if count.heads in drawn
            ],
        )
        for one in found
        if (some := [(count, accuracy_over_noise(count)) for count in one.counts])
        and any(len(points) > 1 for count, points in some if count.heads in drawn)
    ]
    if not panels:
        return _table(found)
    return Figure(
        title=_finding(found),
        caption=f"{caption} · noise in standard deviations of the embedded tokens",
        description=(
            "The share of right answers over the level of normal noise that is added to the"
            " embedded tokens of new sequences, one panel per task, a line per number of heads,"
            " with intervals over seeds. The table has every number of heads."
        ),
        panels=tuple(panels),
        table=_table(found),
        names=tuple(plural(heads, "head") for heads in drawn),
    )


def _spread_out(heads: Sequence[int]) -> list[int]:
    """At most MOST_LINES of them, the ends and what the title compares included."""
    if len(heads) <= MOST_LINES:
        return list(heads)
    places = [round(at * (len(heads) - 1) / (MOST_LINES - 1)) for at in range(MOST_LINES)]
    if MANY in heads and (named := heads.index(MANY)) not in places:
        nearest = min(range(1, MOST_LINES - 1), key=lambda at: abs(places[at] - named))
        places[nearest] = named
    return [heads[place] for place in places]


def _finding(found: Sequence[TaskResult]) -> str:
    """`Right answers with noise of 2 standard deviations: 1 head, 1.9 % (six_relations) to 68.3 %
    (majority); 8 heads, ...`.
    """
    level = max(_levels(found))
    texts = []
    for heads in (FEW, MANY):
        shares = [
            (points[level].value, one.task)
            for one in found
            for count in one.counts
            if count.heads == heads and level in (points := accuracy_over_noise(count))
        ]
        if shares:
            (low, least), (high, most) = min(shares), max(shares)
            between = f"{percent(low)} ({least})"
            between += f" to {percent(high)} ({most})" if most != least else ""
            texts.append(f"{plural(heads, 'head')}, {between}")
    where = f"Right answers with noise of {level:g} standard deviation{'' if level == 1 else 's'}"
    return ": ".join(filter(None, (where, "; ".join(texts))))


def _levels(found: Sequence[TaskResult]) -> list[float]:
    """All levels above 0."""
    every = {x for one in found for count in one.counts for x in accuracy_over_noise(count)}
    return sorted(every - {0.0})


def _table(found: Sequence[TaskResult]) -> Table:
    levels = _levels(found)
    return Table(
        title=(
            "Right answers with noise on the embedded tokens, and loss on sequences that were"
            " trained on"
        ),
        columns=(
            *("task, heads", "right answers"),
            *(f"noise {level:g}" for level in levels),
            *("points lost, mean", "loss, held-out less known, nats"),
        ),
        rows=tuple(
            (
                f"{one.task}, {count.heads}",
                percents(count.accuracy),
                *(percents(points[level]) if level in points else "" for level in levels),
                with_range(count.mean(points_lost)),
                with_range(count.mean(overfit)),
            )
            for one in found
            for count in one.counts
            for points in [accuracy_over_noise(count)]
        ),
        folded=True,
    )
