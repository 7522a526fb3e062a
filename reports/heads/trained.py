"""Trainings over seeds: in how many steps numbers of heads learn a task, how well, at what cost.

A finding is one training. Trainings of one seed saw the same batches whatever their heads, so two
numbers of heads are compared seed by seed. A seed that has not learnt its task within the limit is
censored: it took more steps, nobody knows how many more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import inf, isinf, nan
from statistics import median
from typing import Generic, TypeVar

from ...harness.heads.findings import (
    OnTask,
    Order,
    Trained,
    TrainedHeads,
    TrainedHeadWidth,
    When,
)
from ...harness.stats.counted import median_bounds, share_interval
from ...harness.stats.intervals import Interval, latency_interval, mean_interval
from ..data.row_groups import by

WHENS: tuple[When, ...] = ("before", "after")
LOCAL_SHARE = 0.5  # of the weight, from which a head is called a previous-token or induction head
ASKS = {
    "majority": "which bit is the most frequent of the last five",
    "recall": "which value a key was given with",
    "two_relations": "which tokens stood 1 and 5 places before, both at once",
    "six_relations": "which bits stood 1, 2, 4, 7, 11 and 16 places before, all at once",
    "copy": "how a sequence that begins again goes on",
    "text": "the next character of sentences from a grammar",
    "short_text": "the same, of so few sentences that they can be learnt by heart",
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


def over_seeds(values: Iterable[float | None]) -> Interval:
    return mean_interval([one for one in values if one is not None], "seed")


H = TypeVar("H", bound=OnTask)


@dataclass(frozen=True, kw_only=True)
class Learnt(Trainings[H]):
    """One task with so many heads, of one width."""

    task: str
    heads: int

    @property
    def label(self) -> str:
        return f"{self.task}, {self.heads}"

    @property
    def limit_steps(self) -> int | None:
        """None in runs of earlier versions, which trained all for the same number of steps."""
        return self.trainings[0].limit_steps

    @cached_property
    def until_learnt(self) -> list[float]:
        """Steps of each seed, infinite if it is censored; [] if there was no goal."""
        found = (one.steps_until_learnt for one in self.trainings)
        return [one for one in found if one is not None]

    @property
    def learnt_seeds(self) -> int:
        return sum(not isinf(one) for one in self.until_learnt)

    @cached_property
    def share(self) -> Interval | None:
        """Of the seeds that learn the task within the limit; None without a goal."""
        count = len(self.until_learnt)
        return share_interval(self.learnt_seeds, count) if count else None

    @cached_property
    def steps(self) -> Interval | None:
        """Of the median seed until it has learnt the task; infinite beyond the limit."""
        return _median(self.until_learnt, self.until_learnt)

    def times_the_steps_of(self, other: "Learnt[H]") -> Interval | None:
        """Median ratio of steps until learnt, seed by seed; infinite beyond what the limit allows.

        The true ratio of a censored seed lies between that of the limit and infinity, or 0 and that
        of the limit: an interval takes the end that makes it wider. None if no seed has both.
        """
        lows, highs = [], []
        for one, another in self.pairs(other):
            own, theirs = one.steps_until_learnt, another.steps_until_learnt
            if own is None or theirs is None or not theirs:
                continue
            limit = one.limit_steps or 0
            lows.append(0.0 if isinf(theirs) else min(own, limit) / theirs)
            highs.append(inf if isinf(own) else own / min(theirs, another.limit_steps or theirs))
        return _median(lows, highs)

    def accuracy_at(self, steps: float) -> Interval:
        return over_seeds(one.accuracy_at(steps) for one in self.trainings)


def _median(lows: list[float], highs: list[float]) -> Interval | None:
    """Over seeds whose values lie between these."""
    if not lows:
        return None
    low, high = median_bounds(lows)[0], median_bounds(highs)[1]
    middle = median(highs) if not isinf(sorted(highs)[(len(highs) - 1) // 2]) else inf
    return Interval(value=middle, low=low, high=high, units=len(lows))


@dataclass(frozen=True, kw_only=True)
class HeadCount(Learnt[TrainedHeads]):
    """Heads that share the width of the model."""

    @cached_property
    def loss(self) -> Interval:
        return self.mean("loss_nats")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """A task over the number of heads, in order."""

    task: str
    counts: tuple[HeadCount, ...]

    wide: tuple[Learnt[TrainedHeadWidth], ...] = ()
    """Heads of one width, whatever the width of the model, without those that `counts` has too."""

    @property
    def is_to_be_learnt(self) -> bool:
        return any(one.until_learnt for one in self.counts)

    @property
    def fastest(self) -> HeadCount:
        """The number of heads whose median seed learns in the fewest steps; of equal ones the
        one that learns in more seeds, then the smaller one.
        """
        return min(
            (one for one in self.counts if one.steps),
            key=lambda one: (one.steps.value if one.steps else inf, -one.learnt_seeds, one.heads),
        )

    @property
    def equal_steps(self) -> float:
        """Those of the fastest number of heads, at most the limit; in runs of earlier versions
        those of all trainings.
        """
        if not self.is_to_be_learnt:
            return self.counts[0].trainings[0].steps or nan
        steps = self.fastest.steps
        return min(steps.value if steps else inf, self.fastest.limit_steps or inf)


def results(
    found: Iterable[TrainedHeads], wide: Iterable[TrainedHeadWidth] = ()
) -> list[TaskResult]:
    """By task."""
    by_task, of_width = by(found, lambda one: one.task), by(wide, lambda one: one.task)
    order = [*(task for task in ASKS if task in by_task), *(set(by_task) - ASKS.keys())]
    return [
        TaskResult(
            task=task,
            counts=tuple(
                HeadCount(task=task, heads=heads, trainings=some)
                for heads, some in sorted(by(by_task[task], lambda one: one.heads).items())
            ),
            wide=tuple(
                Learnt(task=task, heads=heads, trainings=some)
                for heads, some in sorted(by(of_width.get(task, ()), lambda o: o.heads).items())
            ),
        )
        for task in order
    ]
