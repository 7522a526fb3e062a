"""Trainings over seeds, and what trained heads are worth: quality over their number, and cost.

A finding is one training. Trainings of one seed saw the same batches whatever their heads, so two
numbers of heads are compared seed by seed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, isfinite, log, nan
from statistics import fmean
from typing import Generic, Literal, NamedTuple, TypeVar

from ...harness.learning.findings import Trained, TrainedGradients, TrainedHeads
from ...harness.rows.findings import by
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


T = TypeVar("T", bound=Trained)


@dataclass(frozen=True, kw_only=True)
class Trainings(Generic[T]):
    """Trainings that differ in their seed only, at least one."""

    trainings: tuple[T, ...]

    @cached_property
    def accuracy(self) -> Interval:
        """The share of right answers."""
        return self.mean(lambda one: one.accuracy_ratio)

    @cached_property
    def step(self) -> Interval:
        """The time of a training step in ms."""
        return latency_interval([[one.step_ms] for one in self.trainings if one.step_ms])

    @property
    def peak_bytes(self) -> float | None:
        known = (one.step_peak_bytes for one in self.trainings)
        return max(filter(None, known), default=None)

    def mean(self, number: Callable[[T], float | None]) -> Interval:
        """Of a number of each training, over the seeds that have it."""
        return over_seeds(map(number, self.trainings))

    def pairs(self, other: "Trainings[T]") -> list[tuple[T, T]]:
        """The trainings of both with equal seeds, which saw the same batches."""
        theirs = {one.train_seed: one for one in other.trainings}
        return [(one, theirs[one.train_seed]) for one in self.trainings if one.train_seed in theirs]

    def more(self, other: "Trainings[T]", number: Callable[[T], float | None]) -> Interval:
        """By how much a number of this is above that of the other, seed by seed."""
        found = ((number(one), number(another)) for one, another in self.pairs(other))
        return over_seeds(None if a is None or b is None else a - b for a, b in found)


def over_seeds(values: Iterable[float | None]) -> Interval:
    return mean_interval([one for one in values if one is not None], "seed")


def accuracy(one: Trained) -> float:
    return one.accuracy_ratio


@dataclass(frozen=True, kw_only=True)
class HeadCount(Trainings[TrainedHeads]):
    """One task with one number of heads. `standing`: against the best number.

    `is_worth`: surely more accurate than every number of heads that takes less time: a point of the
    Pareto front.
    """

    task: str
    heads: int
    standing: Standing = "undecided"
    is_worth: bool = False

    @property
    def label(self) -> str:
        return f"{self.task}, {self.heads}"

    @cached_property
    def loss(self) -> Interval:
        return self.mean(lambda one: one.loss_nats)

    def over_heads(
        self, metric: str, when: When, summary: Callable[[list[float]], float], fewest: int = 1
    ) -> Interval:
        """Of a summary of all heads of a training, which takes so many heads."""
        values = (of_heads(one, metric, when) for one in self.trainings)
        return over_seeds(summary(some) if len(some) >= fewest else None for some in values)


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

    def exactly(self, heads: int) -> HeadCount | None:
        return next((one for one in self.counts if one.heads == heads), None)

    def at_most(self, heads: int) -> HeadCount | None:
        """With so many heads, else with the most below, if they are two at least."""
        return next((one for one in self.counts[::-1] if 2 <= one.heads <= heads), None)

    def of(self, standing: Standing) -> list[int]:
        return [one.heads for one in self.counts if one.standing == standing]


def results(found: Iterable[TrainedHeads]) -> list[TaskResult]:
    """By task."""
    by_task = by(found, lambda one: one.task)
    order = [*(task for task in ASKS if task in by_task), *(set(by_task) - ASKS.keys())]
    return [_task(task, by_task[task]) for task in order]


def _task(task: str, found: Iterable[TrainedHeads]) -> TaskResult:
    by_heads = sorted(by(found, lambda one: one.heads).items())
    counts = [HeadCount(task=task, heads=heads, trainings=some) for heads, some in by_heads]
    best = max(counts, key=lambda one: (one.accuracy.value, -one.loss.value))
    return TaskResult(
        task=task,
        counts=tuple(
            replace(
                one,
                standing=_standing(one, best),
                is_worth=all(
                    one.more(other, accuracy).low > 0
                    for other in counts
                    if other.step.value < one.step.value
                ),
            )
            for one in counts
        ),
    )


def _standing(one: HeadCount, best: HeadCount) -> Standing:
    if one is best:
        return "best"
    behind = best.more(one, accuracy)
    if behind.high <= MARGIN_RATIO and isfinite(behind.low):
        return "equal"
    return "worse" if behind.low > MARGIN_RATIO else "undecided"


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
    return dict(enumerate(losses) if removed is None else zip(removed, losses, strict=False))


def losses_over_left(count: HeadCount, order: Order) -> dict[float, Interval]:
    """Loss by how many heads are left.

    Of the seeds that removed the same numbers of heads; {} if they differ, or removed none.
    """
    found = [losses for one in count.trainings if (losses := by_removed_heads(one, order))]
    if not found or any(values.keys() != found[0].keys() for values in found):
        return {}
    heads = max(found[0])
    return {heads - gone: over_seeds(values[gone] for values in found) for gone in found[0]}


class LeftCost(NamedTuple):
    """Of all attention layers of a decoder with so many heads left, in one forward pass.

    `time_ratio` is over those with all heads; `peak_bytes`: above its input, of the layer that
    takes most; None if it was not counted.
    """

    left: int
    time_ms: float
    time_ratio: Interval
    peak_bytes: int | None
    weight_bytes: int


def costs_over_left(count: HeadCount) -> list[LeftCost]:
    """From all heads to none, of the first seed whose smaller layers were measured; [] without."""
    for one in count.trainings:
        columns = (
            *(one.pruned_layer_ms, one.pruned_layer_time_ratio, one.pruned_layer_time_low_ratio),
            *(one.pruned_layer_time_high_ratio, one.pruned_layer_peak_bytes),
            one.pruned_layer_weight_bytes,
        )
        if rows := [*zip(*(values or () for values in columns), strict=False)]:
            return [
                LeftCost(left, ms, Interval(value=value, low=low, high=high, units=2), peak, weight)
                for left, (ms, value, low, high, peak, weight) in zip(
                    reversed(range(len(rows))), rows, strict=True
                )
            ]
    return []


# ---- noise ---------------------------------------------------------------------------------------


def levels_of(one: TrainedHeads) -> dict[float, float]:
    """Accuracy by level of noise, from the lowest on, without that of no noise; {} if not known.

    A level is in standard deviations of the embedded tokens. Rows written before there were several
    have one.
    """
    levels, accuracies = one.noise_levels_ratio, one.noise_levels_accuracy_ratio
    level, accuracy = one.noise_ratio, one.noisy_accuracy_ratio
    if levels is accuracies is None and level is not None and accuracy is not None:
        return {level: accuracy}
    return dict(sorted(zip(levels or (), accuracies or (), strict=False)))


def accuracy_over_noise(count: HeadCount) -> dict[float, Interval]:
    """By level, 0 first, of the levels that all seeds have; {} without any."""
    found = [levels_of(one) for one in count.trainings]
    shared = sorted(set.intersection(*map(set, found))) if found else []
    if not shared:
        return {}
    return {0.0: count.accuracy} | {
        level: over_seeds(levels[level] for levels in found) for level in shared
    }


def points_lost(one: TrainedHeads) -> float | None:
    """Percentage points of accuracy that noise takes, mean over its levels; None if not known."""
    levels = levels_of(one)
    return 100 * (one.accuracy_ratio - fmean(levels.values())) if levels else None


# ---- gradients -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TrainedModel(Trainings[TrainedGradients]):
    model: str

    def fade(self, when: When) -> Interval:
        """Change of ln of the gradient's norm per token of distance."""
        return self.mean(lambda one: one[f"fade_per_token_{when}"])

    def norms(self) -> dict[float, Interval | None]:
        """After training, by distance, 1, 2, ...: geometric means; None where one is 0."""
        columns = zip(*(one.gradient_norms_after for one in self.trainings), strict=False)
        return {place: _geometric(values) for place, values in enumerate(columns, start=1)}


def trained_models(found: Iterable[TrainedGradients]) -> list[TrainedModel]:
    by_model = by(found, lambda one: one.model)
    return [TrainedModel(model=name, trainings=some) for name, some in by_model.items()]


def _geometric(values: tuple[float, ...]) -> Interval | None:
    if min(values) <= 0:
        return None
    found = over_seeds(map(log, values))
    value, low, high = (
        exp(one) if abs(one) < 300 else nan for one in (found.value, found.low, found.high)
    )
    return Interval(value=value, low=low, high=high, units=found.units)
