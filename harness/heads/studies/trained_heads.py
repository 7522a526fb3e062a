"""Small decoders that differ in their number of heads only, trained on tasks with known structure.

d_model, parameters and batches are the same for every number of heads. The learning rate is tuned
first: of a grid, by seeds of its own, the one with which the median seed learns the task in the
fewest steps. With that rate each seed is trained until it has learnt the task or reaches a limit.

With SOME_REMOVED heads each seed is then trained again for as many steps, while half of all heads
are removed in the middle third of them, one by one and the least important first. Beside its loss
stands that of the first training with half of the heads removed afterwards.
"""

from collections.abc import Callable, Iterator
from math import inf
from statistics import median

import torch

from ....impls.problem import Problem
from .. import removal, training
from ..findings import TrainedHeads
from ..removal import Gated, GatedDecoder, Gates, Head
from ..synthetic_tasks import TASKS, Batch, Task

QUESTION = (
    "How many steps does each number of heads need to learn a task at its best learning rate?"
)
PARTS = {"task": ("majority", "six_relations", "copy", "text"), "heads": (1, 2, 4, 8, 16)}
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
    with training.one_thread():
        rate, tried = tuned(TASKS[task], heads, device, seed)
        yield from tried
        for each in range(seed, seed + SEEDS):
            model, found = trained(TASKS[task], heads, device, each, rate)
            losses = without_half(model, TASKS[task], found) if heads == SOME_REMOVED else {}
            yield found.model_copy(update=losses)


def tuned(
    task: Task, heads: int, device: torch.device, seed: int
) -> tuple[float, list[TrainedHeads]]:
    """The rate with the fewest median steps, or the first if none learns, and the trainings."""
    best, found = LEARNING_RATES[0], []
    for rate in LEARNING_RATES:
        steps: list[float] = []
        for each in TUNING_SEEDS:
            if steps.count(inf) > len(TUNING_SEEDS) // 2:
                break  # the median will not be within the limit
            _, one = trained(task, heads, device, seed + each, rate, is_tuning=True)
            found.append(one)
            steps.append(inf if one.learnt_steps is None else one.learnt_steps)
        if median(steps) < inf:  # fewer steps than that of every rate before
            best, task = rate, task._replace(limit_steps=int(median(steps)))
    return best, found


def trained(
    task: Task, heads: int, device: torch.device, seed: int, rate: float, *, is_tuning: bool = False
) -> tuple[GatedDecoder, TrainedHeads]:
    model = training.decoder(task, heads, device, seed)
    return model, TrainedHeads(
        task=task.name,
        heads=heads,
        train_seed=seed,
        is_tuning=is_tuning,
        learning_rate=rate,
        goal_ratio=task.right_ratio,
        limit_steps=task.limit_steps,
        **training.train(model, task, seed, rate),
    )


def without_half(whole: GatedDecoder, task: Task, found: TrainedHeads) -> dict[str, float]:
    """Losses in nats with all heads, with half removed after training, and with half during it.

    `whole`: as it was trained, `found`: how.
    """
    device, seed, steps = (
        next(whole.model.parameters()).device,
        found.train_seed,
        len(found.step_ms),
    )
    held = training.held_out(task, seed, device)
    judged_on, tested = held.part(0, JUDGED), held.part(JUDGED, len(held.tokens))
    order = [*removal.importance(whole, judged_on)]
    after, during = order[: len(order) // 2], list[Head]()
    smaller = training.decoder(task, found.heads, device, seed)
    gates = pruning(smaller, judged_on, len(after), steps, during)
    task = task._replace(right_ratio=inf, limit_steps=steps)
    training.train(smaller, task, seed, found.learning_rate, gates)

    def loss(model: GatedDecoder, gone: list[Head]) -> float:
        gates = removal.gates_without(model, gone, tested.tokens)
        return training.quality(model, tested, gates)[0]

    return {
        "removed_heads": len(after),
        "whole_loss_nats": loss(whole, []),
        "removed_after_loss_nats": loss(whole, after),
        "removed_during_loss_nats": loss(smaller, during),
    }


def pruning(
    model: Gated, judged_on: Batch, heads: int, steps: int, gone: list[Head]
) -> Callable[[int], Gates]:
    """What removes so many heads one by one in the middle third of the steps. `gone`: filled."""

    def gates(step: int) -> Gates:
        third = steps // 3
        while len(gone) < heads and step > third + len(gone) * third // heads:
            gone.append(next(iter(removal.importance(model, judged_on, gone))))
        return removal.gates_without(model, gone, judged_on.tokens)

    return gates
