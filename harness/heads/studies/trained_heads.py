"""Small decoders that differ in their number of heads only, trained on tasks with known structure.

d_model, parameters and batches are the same for every number of heads. The learning rate is tuned
first: of a grid, by seeds of its own, the one with which the median seed learns the task in the
fewest steps. With that rate each seed is trained until it has learnt the task or reaches a limit.

With SOME_REMOVED heads each seed is then trained again for as many steps, while half of all heads
are removed in the middle third of them, one by one and the least important first. Beside its loss
stands that of the first training with half of the heads removed afterwards.
"""

from collections.abc import Iterator
from dataclasses import asdict, replace
from math import inf
from statistics import median

import torch
from torch import Tensor

from ....impls.modules.block import Decoder
from ....impls.problem import Problem
from .. import removal, training
from ..findings import TrainedHeads
from ..removal import GatedDecoder, Head
from ..synthetic_tasks import Batch, task
from ..training import Goal, held_out, one_thread

QUESTION = "In how many steps does each number of heads learn a task, at its own learning rate?"
PARTS = {"task": ("majority", "six_relations", "copy", "text"), "heads": (1, 2, 4, 8, 16)}
GOALS = {
    "majority": Goal(right_ratio=0.98, limit_steps=800),
    "six_relations": Goal(right_ratio=0.98, limit_steps=3000),
    "copy": Goal(right_ratio=0.98, limit_steps=800),
    "text": Goal(right_ratio=0.78, limit_steps=1200),  # of about 0.80 that can be known
}
LEARNING_RATES = (1.5e-3, 3e-3, 7.5e-4, 6e-3, 3.75e-4)
"""In the order in which they are tried: one that is tried later is given as many steps as the best
one before needed, since with more it would not be chosen."""
TUNING_SEEDS = range(1000, 1003)  # above that of the run
SEEDS = 6  # the fewest whose smallest and largest bound the median at the level of all intervals
SOME_REMOVED = 8
JUDGED = 64  # held-out sequences by which heads are ranked; losses are of the others


def run(
    problem: Problem, device: torch.device, seed: int, *, task: str, heads: int
) -> Iterator[TrainedHeads]:
    """A finding per training. `problem` is not used: the shapes are those of training.py."""
    with one_thread():
        tried = list(tuned(task, heads, device, seed))
        yield from tried
        rate = chosen(tried)
        for each in range(seed, seed + SEEDS):
            model, found = trained(task, heads, device, each, rate, GOALS[task])
            losses = without_half(model, found) if heads == SOME_REMOVED else {}
            yield found.model_copy(update=losses)


def trained(
    name: str, heads: int, device: torch.device, seed: int, rate: float, goal: Goal
) -> tuple[Decoder, TrainedHeads]:
    of = task(name)
    model = training.decoder(of, heads, device, seed)
    done = training.train(model, of, seed, rate, goal)
    return model, TrainedHeads(
        task=name,
        heads=heads,
        train_seed=seed,
        learning_rate=rate,
        goal_ratio=goal.right_ratio,
        limit_steps=goal.limit_steps,
        **asdict(done),
        **training.sizes(model),
    )


# ---- the learning rate ---------------------------------------------------------------------------


def tuned(name: str, heads: int, device: torch.device, seed: int) -> Iterator[TrainedHeads]:
    """A finding per training of the grid."""
    goal = GOALS[name]
    for rate in LEARNING_RATES:
        found: list[TrainedHeads] = []
        for each in TUNING_SEEDS:
            if sum(one.learnt_steps is None for one in found) > len(TUNING_SEEDS) // 2:
                break  # the median will not be within the limit
            _, one = trained(name, heads, device, seed + each, rate, goal)
            found.append(one.model_copy(update={"is_tuning": True}))
        yield from found
        if (steps := _median_steps(found)) < inf:
            goal = replace(goal, limit_steps=int(steps))


def chosen(tried: list[TrainedHeads]) -> float:
    """The rate with the fewest median steps; of equal ones, or if none learns, the first."""
    by_rate: dict[float, list[TrainedHeads]] = {}
    for one in tried:
        by_rate.setdefault(one.learning_rate, []).append(one)
    return min(by_rate, key=lambda rate: _median_steps(by_rate[rate]))


def _median_steps(found: list[TrainedHeads]) -> float:
    return median(inf if one.learnt_steps is None else one.learnt_steps for one in found)


# ---- removed heads -------------------------------------------------------------------------------


def without_half(model: Decoder, found: TrainedHeads) -> dict[str, float]:
    """Losses in nats with all heads, with half removed after training, and with half during it.

    `model`: as it was trained, `found`: how.
    """
    of, device, seed = task(found.task), next(model.parameters()).device, found.train_seed
    held = held_out(of, seed, device)
    judged_on, tested = held.part(0, JUDGED), held.part(JUDGED, len(held.tokens))
    whole, steps = GatedDecoder(model), len(found.step_ms)
    order = removal.by_importance(whole, judged_on)
    half = len(order) // 2
    smaller = training.decoder(of, found.heads, device, seed)
    pruning = Pruning(GatedDecoder(smaller), judged_on, half, steps)
    goal = Goal(right_ratio=inf, limit_steps=steps)
    training.train(smaller, of, seed, found.learning_rate, goal, pruning.loss)

    def loss(of: GatedDecoder, gone: list[Head]) -> float:
        return removal.without(of, gone, tested, removal.mean)

    return {
        "removed_heads": half,
        "whole_loss_nats": loss(whole, []),
        "removed_after_loss_nats": loss(whole, order[:half]),
        "removed_during_loss_nats": loss(pruning.model, pruning.gone),
    }


class Pruning:
    """Removes so many heads one by one in the middle third of the steps; `loss` counts these."""

    def __init__(self, model: GatedDecoder, judged_on: Batch, heads: int, steps: int) -> None:
        self.model, self.judged_on, self.step = model, judged_on, 0
        self.removes_at = [steps // 3 + one * (steps // 3) // heads for one in range(heads)]
        self.gone: list[Head] = []

    def loss(self, batch: Batch) -> Tensor:
        for _ in range(self.removes_at.count(self.step)):
            found = removal.importance(self.model, self.judged_on, self.gone)
            self.gone.append(min(found, key=lambda one: found[one]))
        self.step += 1
        gates = removal.gates_without(self.model, self.gone, batch.tokens)
        return removal.loss_of(self.model.logits(batch.tokens, gates), batch.targets)
