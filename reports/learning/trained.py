"""What trained heads are worth: quality over their number, with intervals over seeds, and cost.

From the findings of the study trained_heads, one per training. Trainings of one seed saw the same
batches whatever their heads, so two numbers of heads are compared seed by seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite
from statistics import fmean
from typing import Literal

from ...harness.learning.findings import TrainedHeads
from ...harness.rows.findings import findings_of
from ...harness.stats.intervals import Interval, latency_interval, mean_interval

MARGIN_RATIO = 0.02  # of answers: accuracies this close count as equal
LOCAL_SHARE = 0.5  # of the weight, from which a head is called a previous-token or induction head
Standing = Literal["best", "equal", "worse", "undecided"]
When = Literal["before", "after"]
Order = Literal["pruned", "greedy"]
"""In which heads were removed: by importance, by trial."""
ASKS = {
    "majority": "which bit is the most frequent of the last five",
    "recall": "which value a key was given with",
    "two_relations": "which tokens stood 1 and 5 places before, both at once",
    "six_relations": "which bits stood 1, 2, 4, 7, 11 and 16 places before, all at once",
    "copy": "how a sequence that begins again goes on",
    "text": "the next character of sentences from a grammar",
}
"""In the order in which tasks are shown; others follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCount:
    """The trainings of one task with one number of heads. `standing`: against the best number.

    `is_worth`: surely more accurate than every number of heads that takes less time: a point of the
    Pareto front.
    """

    task: str
    heads: int
    trainings: tuple[TrainedHeads, ...]
    accuracy: Interval
    loss: Interval
    step: Interval
    peak_bytes: float | None
    standing: Standing = "undecided"
    is_worth: bool = False

    def mean(self, number: Callable[[TrainedHeads], float | None]) -> Interval:
        """Of a number of each training, over the seeds that have it."""
        found = map(number, self.trainings)
        return mean_interval([value for value in found if value is not None], "seed")

    def over_heads(
        self, metric: str, when: When, summary: Callable[[list[float]], float], fewest: int = 1
    ) -> Interval:
        """Of a summary of all heads of a training, which takes so many heads."""
        values = (of_heads(one, metric, when) for one in self.trainings)
        return mean_interval([summary(some) for some in values if len(some) >= fewest], "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """A task over the number of heads, in order."""

    task: str
    counts: tuple[HeadCount, ...]

    @property
    def best(self) -> HeadCount:
        return next(one for one in self.counts if one.standing == "best")

    @property
    def enough(self) -> HeadCount:
        """The fewest heads that are as accurate as the best within the margin."""
        return next(one for one in self.counts if one.standing in ("best", "equal"))

    def of(self, standing: Standing) -> list[int]:
        return [one.heads for one in self.counts if one.standing == standing]


def results(studies: object) -> list[TaskResult]:
    """By task, from the findings of a run's studies."""
    by_task: dict[str, dict[int, list[TrainedHeads]]] = {}
    for one in findings_of(TrainedHeads, studies):
        by_task.setdefault(one.task, {}).setdefault(one.heads, []).append(one)
    order = [*(task for task in ASKS if task in by_task), *(set(by_task) - ASKS.keys())]
    return [_task(task, by_task[task]) for task in order]


def _task(task: str, by_heads: dict[int, list[TrainedHeads]]) -> TaskResult:
    counts = [_count(task, heads, by_heads[heads]) for heads in sorted(by_heads)]
    best = max(counts, key=lambda one: (one.accuracy.value, -one.loss.value))
    return TaskResult(
        task=task,
        counts=tuple(
            replace(one, standing=_standing(one, best), is_worth=_is_worth(one, counts))
            for one in counts
        ),
    )


def _count(task: str, heads: int, found: Sequence[TrainedHeads]) -> HeadCount:
    return HeadCount(
        task=task,
        heads=heads,
        trainings=tuple(found),
        accuracy=mean_interval([one.accuracy_ratio for one in found], "seed"),
        loss=mean_interval([one.loss_nats for one in found], "seed"),
        step=latency_interval([[one.step_ms] for one in found if one.step_ms]),
        peak_bytes=max((one.step_peak_bytes for one in found if one.step_peak_bytes), default=None),
    )


def _standing(one: HeadCount, best: HeadCount) -> Standing:
    if one is best:
        return "best"
    behind = more_accurate(best, one)
    if not isfinite(behind.low):
        return "undecided"
    if behind.high <= MARGIN_RATIO:
        return "equal"
    return "worse" if behind.low > MARGIN_RATIO else "undecided"


def _is_worth(one: HeadCount, counts: Sequence[HeadCount]) -> bool:
    faster = [other for other in counts if other.step.value < one.step.value]
    return all(more_accurate(one, other).low > 0 for other in faster)


def more(
    one: HeadCount, other: HeadCount, number: Callable[[TrainedHeads], float | None]
) -> Interval:
    """By how much a number of one is above that of the other, seed by seed."""
    theirs = {training.train_seed: number(training) for training in other.trainings}
    pairs = ((number(training), theirs.get(training.train_seed)) for training in one.trainings)
    return mean_interval([a - b for a, b in pairs if a is not None and b is not None], "seed")


def more_accurate(one: HeadCount, other: HeadCount) -> Interval:
    return more(one, other, lambda training: training.accuracy_ratio)


def of_heads(one: TrainedHeads, metric: str, when: When) -> list[float]:
    """A metric of all heads of all blocks; [] if it is not known."""
    blocks = one[f"{metric}_{when}"] or []
    return [value for block in blocks for value in block if value is not None]


def overfit(one: TrainedHeads) -> float | None:
    """Loss in nats on held-out sequences less that on sequences like those trained on."""
    return None if one.seen_loss_nats is None else one.loss_nats - one.seen_loss_nats


# ---- heads that are removed ----------------------------------------------------------------------


def rises(one: TrainedHeads) -> list[float]:
    """Of the loss in nats without one head, of each that was removed alone."""
    whole, blocks = one.whole_loss_nats, one.single_loss_nats
    if whole is None or blocks is None:
        return []
    return [loss - whole for block in blocks for loss in block]


def by_removed_heads(one: TrainedHeads, order: Order) -> dict[int, float]:
    """Loss by how many heads were removed; rows that do not say how many removed one at a time."""
    losses = one[f"{order}_loss_nats"] or []
    removed = one[f"{order}_removed_heads"]
    if removed is None:
        return dict(enumerate(losses))
    rising = all(before < after for before, after in pairwise(removed))
    return dict(zip(removed, losses, strict=True)) if len(removed) == len(losses) and rising else {}


def losses_over_left(count: HeadCount, order: Order) -> dict[float, Interval]:
    """Loss by how many heads are left.

    Of the seeds that removed the same numbers of heads; {} if they differ, or removed none.
    """
    found = [losses for one in count.trainings if (losses := by_removed_heads(one, order))]
    if not found or any(values.keys() != found[0].keys() for values in found):
        return {}
    heads = max(found[0])
    return {
        heads - gone: mean_interval([values[gone] for values in found], "seed") for gone in found[0]
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftCost:
    """Of all attention layers of a decoder with so many heads left, in one forward pass.

    `time_ratio` and `peak_share` are of those with all heads; `peak_bytes`: above its input, of the
    layer that takes most; None if it was not counted.
    """

    left: int
    time_ms: float
    time_ratio: Interval
    peak_bytes: int | None
    peak_share: float | None
    weight_bytes: int


def costs_over_left(count: HeadCount) -> list[LeftCost]:
    """From all heads to none, of the first seed whose smaller layers were measured; [] without."""
    for one in count.trainings:
        lists = (
            *(one.pruned_layer_ms, one.pruned_layer_time_ratio, one.pruned_layer_time_low_ratio),
            *(one.pruned_layer_time_high_ratio, one.pruned_layer_peak_bytes),
            one.pruned_layer_weight_bytes,
        )
        columns = [values for values in lists if values is not None]
        if len(columns) == len(lists) and len({len(values) for values in columns}) == 1:
            rows = list(zip(*columns, strict=True))
            whole = rows[0][4]
            return [
                LeftCost(
                    left=len(rows) - 1 - gone,
                    time_ms=ms,
                    time_ratio=Interval(value=value, low=low, high=high, units=2),
                    peak_bytes=peak,
                    peak_share=peak / whole if peak is not None and whole else None,
                    weight_bytes=weight,
                )
                for gone, (ms, value, low, high, peak, weight) in enumerate(rows)
            ]
    return []


# ---- noise ---------------------------------------------------------------------------------------


def levels_of(one: TrainedHeads) -> dict[float, float]:
    """Accuracy by level of noise, from the lowest on, without that of no noise; {} if not known.

    A level is in standard deviations of the embedded tokens. Rows written before there were several
    have one.
    """
    levels, accuracies = one.noise_levels_ratio, one.noise_levels_accuracy_ratio
    if levels is None and accuracies is None:
        if one.noise_ratio is None or one.noisy_accuracy_ratio is None:
            return {}
        return {one.noise_ratio: one.noisy_accuracy_ratio}
    if levels is None or accuracies is None or len(levels) != len(accuracies):
        return {}
    return dict(sorted(zip(levels, accuracies, strict=True)))


def accuracy_over_noise(count: HeadCount) -> dict[float, Interval]:
    """By level, 0 first, of the levels that all seeds have; {} without any."""
    found = [levels_of(one) for one in count.trainings]
    shared = sorted(set.intersection(*map(set, found))) if found else []
    if not shared:
        return {}
    return {0.0: count.accuracy} | {
        level: mean_interval([levels[level] for levels in found], "seed") for level in shared
    }


def points_lost(one: TrainedHeads) -> float | None:
    """Percentage points of accuracy that noise takes, mean over its levels; None if not known."""
    levels = levels_of(one)
    return 100 * (one.accuracy_ratio - fmean(levels.values())) if levels else None
