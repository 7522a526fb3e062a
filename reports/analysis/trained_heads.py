"""What trained heads are worth: quality over their number, with intervals over seeds, and cost.

Reads the findings of the study trained_heads, one per training. Trainings of one seed saw the same
batches whatever their heads, so two numbers of heads are compared seed by seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, isfinite, log
from statistics import fmean, median
from typing import Any, Literal

from ...harness.stats.intervals import Interval, latency_interval, mean_interval
from ..data.run_meta import finite_number

STUDY = "trained_heads"
MARGIN_RATIO = 0.02  # of answers: accuracies this close count as equal
Finding = Mapping[str, Any]
Standing = Literal["best", "equal", "worse", "undecided"]
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

    `behind`: by how much the best is more accurate, seed by seed. `is_worth`: surely more accurate
    than every number of heads that takes less time: a point of the Pareto front.
    """

    task: str
    heads: int
    trainings: tuple[Finding, ...]
    accuracy: Interval
    loss: Interval
    step: Interval
    peak_bytes: float | None
    standing: Standing = "undecided"
    behind: Interval | None = None
    is_worth: bool = False


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


def trainings(run: Mapping[str, Any]) -> list[Finding]:
    """The findings that have what every reader of them needs."""
    found = run.get("studies")
    return [one for one in (found if isinstance(found, list) else []) if _is_training(one)]


def results(run: Mapping[str, Any]) -> list[TaskResult]:
    by_task: dict[str, dict[int, list[Finding]]] = {}
    for one in trainings(run):
        by_task.setdefault(one["task"], {}).setdefault(one["heads"], []).append(one)
    order = [*(task for task in ASKS if task in by_task), *(set(by_task) - ASKS.keys())]
    return [_task(task, by_task[task]) for task in order]


def _task(task: str, by_heads: Mapping[int, Sequence[Finding]]) -> TaskResult:
    counts = [_count(task, heads, by_heads[heads]) for heads in sorted(by_heads)]
    best = max(counts, key=lambda one: (one.accuracy.value, -one.loss.value))
    judged = [_judged(one, best) for one in counts]
    return TaskResult(task=task, counts=tuple(_worth(one, judged) for one in judged))


def _count(task: str, heads: int, found: Sequence[Finding]) -> HeadCount:
    peaks = [one.get("step_peak_bytes") for one in found]
    known = [float(size) for size in peaks if type(size) is int]
    steps = [one["step_ms"] for one in found if _are_positive(one.get("step_ms"))]
    return HeadCount(
        task=task,
        heads=heads,
        trainings=tuple(found),
        accuracy=mean_interval([one["accuracy_ratio"] for one in found], "seed"),
        loss=mean_interval([one["loss_nats"] for one in found], "seed"),
        step=latency_interval([[samples] for samples in steps]),
        peak_bytes=max(known) if known else None,
    )


def _judged(one: HeadCount, best: HeadCount) -> HeadCount:
    if one is best:
        return _with(one, standing="best")
    behind = difference(one, best, "accuracy_ratio")
    standing: Standing = "undecided"
    if isfinite(behind.low):
        if behind.high <= MARGIN_RATIO:
            standing = "equal"
        elif behind.low > MARGIN_RATIO:
            standing = "worse"
    return _with(one, standing=standing, behind=behind)


def difference(one: HeadCount, other: HeadCount, name: str) -> Interval:
    """Of a number of `other` to that of `one`, paired by seed."""
    own = {finding["train_seed"]: finding for finding in one.trainings}
    pairs = [
        (finding[name], own[finding["train_seed"]][name])
        for finding in other.trainings
        if finding["train_seed"] in own
    ]
    return mean_interval([theirs - ours for theirs, ours in pairs], "seed")


def _worth(one: HeadCount, counts: Sequence[HeadCount]) -> HeadCount:
    """Whether it is surely more accurate than every number of heads that takes less time."""
    faster = [other for other in counts if other.step.value < one.step.value]
    worth = all(difference(other, one, "accuracy_ratio").low > 0 for other in faster)
    return _with(one, is_worth=worth)


def _with(one: HeadCount, **values: Any) -> HeadCount:
    return replace(one, **values)


# ---- what heads look at --------------------------------------------------------------------------

LOCAL_SHARE = 0.5  # of the weight, from which a head is called a previous-token or induction head


def of_heads(one: Finding, metric: str, when: str) -> list[float]:
    """A metric of all heads of all blocks; [] if it is not known."""
    blocks = one.get(f"{metric}_{when}")
    if not isinstance(blocks, list):
        return []
    return [
        float(value)
        for block in blocks
        if isinstance(block, list)
        for value in block
        if type(value) in (int, float)
    ]


def mean_of(counts: HeadCount, metric: str, when: str) -> Interval:
    """The mean over heads, with its interval over seeds."""
    values = [of_heads(one, metric, when) for one in counts.trainings]
    return mean_interval([fmean(found) for found in values if found], "seed")


def spread_of(counts: HeadCount, metric: str, when: str) -> Interval:
    """The most local head against the most global: largest less smallest, over seeds."""
    values = [of_heads(one, metric, when) for one in counts.trainings]
    return mean_interval([max(found) - min(found) for found in values if len(found) > 1], "seed")


def share_of(counts: HeadCount, metric: str, when: str) -> Interval:
    """Heads with at least LOCAL_SHARE of their weight there."""
    values = [of_heads(one, metric, when) for one in counts.trainings]
    return mean_interval(
        [fmean(value >= LOCAL_SHARE for value in found) for found in values if found], "seed"
    )


def drawn(result: TaskResult, most: int = 8) -> tuple[HeadCount, Finding] | None:
    """The training whose maps are shown: of the fewest heads that are enough, but two or more."""
    wanted = max(2, result.enough.heads)
    for one in sorted(result.counts, key=lambda one: (one.heads < wanted, abs(one.heads - wanted))):
        for finding in one.trainings:
            if 1 < one.heads <= most and has_maps(finding):
                return one, finding
    return None


def has_maps(one: Finding) -> bool:
    return all(_are_maps(one.get(f"weight_rows_{when}")) for when in ("before", "after"))


def favourite(rows: Sequence[Sequence[float]]) -> tuple[int, float]:
    """How many places back a causal map has most weight, and its mean share of it.

    Of the last third of the queries: the first ones have too few tokens before them, and tasks may
    ask them nothing.
    """
    n = len(rows)
    first = 2 * n // 3
    shares = {
        back: fmean(rows[query][query - back] for query in range(first, n))
        for back in range(first + 1)
    }
    back = max(shares, key=lambda one: shares[one])
    return back, shares[back]


def tokens_attended(rows: Sequence[Sequence[float]]) -> float:
    """exp of the mean entropy of the rows."""
    return exp(fmean(-sum(w * log(w) for w in row if w > 0) for row in rows))


# ---- pruning -------------------------------------------------------------------------------------


def single_removals(one: HeadCount) -> Interval:
    """By how much the loss rises in nats without one head: of each seed the median over heads."""
    rises = [
        median(value - finding["whole_loss_nats"] for value in losses)
        for finding in one.trainings
        if (losses := _flat(finding.get("single_loss_nats")))
        and finite_number(finding, "whole_loss_nats") is not None
    ]
    return mean_interval(rises, "seed")


def worst_removal(one: HeadCount) -> Interval:
    """The same of the head that is missed most."""
    rises = [
        max(losses) - finding["whole_loss_nats"]
        for finding in one.trainings
        if (losses := _flat(finding.get("single_loss_nats")))
        and finite_number(finding, "whole_loss_nats") is not None
    ]
    return mean_interval(rises, "seed")


def losses_over_left(one: HeadCount, name: str) -> dict[int, Interval]:
    """Loss by how many heads are left, of `pruned_loss_nats` or `greedy_loss_nats`.

    Of the seeds that removed the same numbers of heads; {} if they differ, or removed none.
    """
    found = [losses for each in one.trainings if (losses := by_removed_heads(each, name))]
    if not found or any(values.keys() != found[0].keys() for values in found):
        return {}
    heads = max(found[0])
    return {
        heads - gone: mean_interval([values[gone] for values in found], "seed") for gone in found[0]
    }


def by_removed_heads(finding: Finding, name: str) -> dict[int, float]:
    """Loss by how many heads were removed; rows that do not say how many removed one at a time."""
    losses = _flat([finding.get(name)])
    removed = finding.get(name.replace("loss_nats", "removed_heads"))
    if removed is None:
        return dict(enumerate(losses))
    is_known = isinstance(removed, list) and all(type(count) is int for count in removed)
    if not is_known or len(removed) != len(losses) or sorted(set(removed)) != removed:
        return {}
    return dict(zip(removed, losses, strict=True))


def overfit(one: HeadCount) -> Interval:
    """Loss in nats on held-out sequences less that on sequences like those trained on."""
    return mean_interval(
        [
            finding["loss_nats"] - known
            for finding in one.trainings
            if (known := finite_number(finding, "seen_loss_nats")) is not None
        ],
        "seed",
    )


# ---- checks --------------------------------------------------------------------------------------


def _is_training(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and one.get("study") == STUDY
        and isinstance(one.get("task"), str)
        and type(one.get("heads")) is int
        and one["heads"] > 0
        and type(one.get("train_seed")) is int
        and all(finite_number(one, name) is not None for name in ("accuracy_ratio", "loss_nats"))
        and 0 <= one["accuracy_ratio"] <= 1
    )


def _are_positive(values: Any) -> bool:
    return (
        isinstance(values, list)
        and bool(values)
        and all(type(value) in (int, float) and 0 < value < 1e12 for value in values)
    )


def _flat(blocks: Any) -> list[float]:
    """Every number of a list of lists; [] if it is something else."""
    if not isinstance(blocks, list) or not all(isinstance(block, list) for block in blocks):
        return []
    values = [value for block in blocks for value in block]
    known = all(type(value) in (int, float) and isfinite(value) for value in values)
    return values if known else []


def _are_maps(blocks: Any) -> bool:
    """[block][head][query][key] of shares, all maps square and of one size."""
    if not isinstance(blocks, list) or not blocks or not all(isinstance(b, list) for b in blocks):
        return False
    maps = [one for block in blocks for one in block]
    return bool(maps) and all(
        isinstance(rows, list)
        and bool(rows)
        and all(
            isinstance(row, list)
            and len(row) == len(rows)
            and all(type(w) in (int, float) and 0 <= w <= 1.0001 for w in row)
            for row in rows
        )
        for rows in maps
    )
