"""Trainings over seeds, and what trained heads are worth: quality over their number, and cost.

A finding is one training. Trainings of one seed saw the same batches whatever their heads, so two
numbers of heads are compared seed by seed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, isfinite, log, nan
from typing import Generic, Literal, NamedTuple, TypeVar

from ...harness.learning.findings import Order, Trained, TrainedGradients, TrainedHeads, When
from ...harness.rows.findings import by
from ...harness.stats.intervals import Interval, latency_interval, mean_interval

MARGIN_RATIO = 0.02  # of answers: accuracies this close count as equal
LOCAL_SHARE = 0.5  # of the weight, from which a head is called a previous-token or induction head
Standing = Literal["best", "equal", "worse", "not decided"]
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
        return self.mean("accuracy_ratio")

    @cached_property
    def step(self) -> Interval:
        """The time of a training step in ms."""
        return latency_interval([[one.step_ms] for one in self.trainings if one.step_ms])

    @property
    def peak_bytes(self) -> float | None:
        known = (one.step_peak_bytes for one in self.trainings)
        return max(filter(None, known), default=None)

    def mean(self, number: str) -> Interval:
        """Of what a finding has under this name, over the seeds that have it."""
        return over_seeds(one[number] for one in self.trainings)

    def pairs(self, other: "Trainings[T]") -> list[tuple[T, T]]:
        """The trainings of both with equal seeds, which saw the same batches."""
        theirs = {one.train_seed: one for one in other.trainings}
        return [(one, theirs[one.train_seed]) for one in self.trainings if one.train_seed in theirs]

    def more(self, other: "Trainings[T]", number: str = "accuracy_ratio") -> Interval:
        """By how much a number of this is above that of the other, seed by seed."""
        found = ((one[number], another[number]) for one, another in self.pairs(other))
        return over_seeds(None if a is None or b is None else a - b for a, b in found)


def over_seeds(values: Iterable[float | None]) -> Interval:
    return mean_interval([one for one in values if one is not None], "seed")


def spread(values: list[float]) -> float:
    """The most local head against the most global."""
    return max(values) - min(values)


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


@dataclass(frozen=True, kw_only=True)
class HeadCount(Trainings[TrainedHeads]):
    """One task with one number of heads. `standing`: against the best number.

    `is_worth`: surely more accurate than every number of heads that takes less time: a point of the
    Pareto front.
    """

    task: str
    heads: int
    standing: Standing = "not decided"
    is_worth: bool = False

    @property
    def label(self) -> str:
        return f"{self.task}, {self.heads}"

    @cached_property
    def loss(self) -> Interval:
        return self.mean("loss_nats")

    def over_heads(
        self, metric: str, when: When, summary: Callable[[list[float]], float], fewest: int = 1
    ) -> Interval:
        """Of a summary of all heads of a training, which takes so many heads."""
        values = (one.of_heads(metric, when) for one in self.trainings)
        return over_seeds(summary(some) if len(some) >= fewest else None for some in values)

    def losses_over_left(self, order: Order) -> dict[float, Interval]:
        """Loss by how many heads are left.

        Of the seeds that removed the same numbers of heads; {} if they differ, or removed none.
        """
        found = [one.loss_by_removed_heads(order) for one in self.trainings]
        found = [losses for losses in found if losses]
        if not found or any(values.keys() != found[0].keys() for values in found):
            return {}
        heads = max(found[0])
        return {heads - gone: over_seeds(values[gone] for values in found) for gone in found[0]}

    def costs_over_left(self) -> list[LeftCost]:
        """From all heads to none, of the first seed whose smaller layers were measured."""
        for one in self.trainings:
            columns = (
                *(one.pruned_layer_ms, one.pruned_layer_time_ratio),
                *(one.pruned_layer_time_low_ratio, one.pruned_layer_time_high_ratio),
                *(one.pruned_layer_peak_bytes, one.pruned_layer_weight_bytes),
            )
            if rows := [*zip(*(values or () for values in columns), strict=False)]:
                return [
                    LeftCost(
                        len(rows) - place,
                        ms,
                        Interval(value=value, low=low, high=high, units=2),
                        *of,
                    )
                    for place, (ms, value, low, high, *of) in enumerate(rows, start=1)
                ]
        return []

    def accuracy_over_noise(self) -> dict[float, Interval]:
        """By level, 0 first, of the levels that all seeds have; {} without any."""
        found = [one.accuracy_by_noise for one in self.trainings]
        shared = sorted(set.intersection(*map(set, found)))
        levels = {level: over_seeds(one[level] for one in found) for level in shared}
        return {0.0: self.accuracy} | levels if levels else {}


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
                    one.more(other).low > 0 for other in counts if other.step.value < one.step.value
                ),
            )
            for one in counts
        ),
    )


def _standing(one: HeadCount, best: HeadCount) -> Standing:
    if one is best:
        return "best"
    behind = best.more(one)
    if behind.high <= MARGIN_RATIO and isfinite(behind.low):
        return "equal"
    return "worse" if behind.low > MARGIN_RATIO else "not decided"


# ---- gradients -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TrainedModel(Trainings[TrainedGradients]):
    model: str

    def fade(self, when: When) -> Interval:
        """Change of ln of the gradient's norm per token of distance."""
        return self.mean(f"fade_per_token_{when}")

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
