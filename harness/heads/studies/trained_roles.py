"""Which heads of a small decoder look at what in a text, and the decoder without half of them.

The heads are looked at before and after training (roles.py). Then half of all heads are missing:
removed after the training, the least important first; removed one by one during it, in its middle
third, by the importance that they have then; or never there, in a model that is trained with half
as many heads of the same width. All are trained for equally many steps on the same batches.
"""

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ....impls.modules.block import Decoder
from ....impls.problem import Problem
from .. import removal, roles, training
from ..findings import TrainedRoles
from ..removal import GatedDecoder, Head
from ..synthetic_tasks import Batch, task
from ..training import D_MODEL, Goal, Learning, held_out, loss_of, one_thread, seen, share_right

QUESTION = "Which heads look at a verb's subject, rare characters or near ones, and who is missed?"
PARTS = {"seed_number": (0, 1, 2, 3, 4, 5)}
TASK, TOKENS, HEADS = "text", 32, 8
GOAL = Goal(None, 500)
JUDGED = 64  # sequences that importance is of


def run(
    problem: Problem, device: torch.device, seed: int, *, seed_number: int
) -> Iterator[TrainedRoles]:
    """`problem` is not used: the shapes are those of training.py."""
    with one_thread():
        yield trained(device, seed + seed_number)


def trained(device: torch.device, seed: int) -> TrainedRoles:
    of, looked = task(TASK, TOKENS), roles.looked_at(TOKENS)
    tested, known = held_out(of, seed, device), seen(of, seed, device)
    judged_on, asked = known.part(0, JUDGED), looked.batch.to(device)
    model = training.decoder(of, HEADS, device, seed, tokens=TOKENS)
    before = _weights(model, asked)
    rate = Learning(model, of, GOAL, seed)
    done = training.train(model, of, rate, seed)
    after = _weights(model, asked)

    whole = GatedDecoder(model)
    order = removal.by_importance(whole, judged_on)
    half = len(order) // 2

    shrinking = training.decoder(of, HEADS, device, seed, tokens=TOKENS)
    pruning = Pruning(GatedDecoder(shrinking), judged_on, half, GOAL.limit_steps)
    _train(shrinking, seed, pruning.loss)

    small = training.decoder(of, HEADS // 2, device, seed, tokens=TOKENS, d_k=D_MODEL // HEADS)
    _train(small, seed, partial(_loss, GatedDecoder(small)))

    variants: dict[str, tuple[GatedDecoder, Collection[Head]]] = {
        "whole": (whole, ()),
        "pruned_after": (whole, order[:half]),
        "pruned_during": (pruning.model, pruning.gone),
        "half_from_start": (GatedDecoder(small), ()),
    }
    far = Batch(asked.tokens[~looked.is_near], asked.targets[~looked.is_near])
    looks: dict[str, Any] = {}
    for role in roles.ROLES:
        looks[f"{role}_even_weight"] = roles.even_weight(looked, role)
        looks[f"{role}_weight_before"] = roles.weights_on(before, looked, role)
        looks[f"{role}_weight_after"] = roles.weights_on(after, looked, role)
    for name, (gated, gone) in variants.items():
        looks[f"{name}_nats"] = removal.without(gated, gone, tested, removal.mean)
        looks[f"{name}_endings_ratio"] = removal.without(gated, gone, asked, _endings_right)
        looks[f"{name}_far_endings_ratio"] = removal.without(gated, gone, far, _endings_right)
    return TrainedRoles(
        **training.learnt(TASK, of, model, done, seed, tested, rate),
        **looks,
        verb_count=len(asked.tokens),
        far_verb_count=len(far.tokens),
        removed_heads=half,
    )


class Pruning:
    """Removes so many heads one by one in the middle third of the steps; `loss` counts these."""

    def __init__(self, model: GatedDecoder, judged_on: Batch, heads: int, steps: int) -> None:
        self.model, self.judged_on, self.step = model, judged_on, 0
        self.removes_at = {steps // 3 + one * (steps // 3) // heads for one in range(heads)}
        self.gone: list[Head] = []

    def loss(self, batch: Batch) -> Tensor:
        if self.step in self.removes_at:
            found = removal.importance(self.model, self.judged_on, self.gone)
            self.gone.append(min(found, key=lambda one: found[one]))
        self.step += 1
        return _loss(self.model, batch, self.gone)


def _weights(model: Decoder, batch: Batch) -> list[Tensor]:
    with torch.no_grad():
        found: tuple[Tensor, list[Tensor]] = model(batch.tokens, need_weights=True)
    return found[1]


def _loss(model: GatedDecoder, batch: Batch, gone: Collection[Head] = ()) -> Tensor:
    gates = removal.gates_without(model, gone, batch.tokens)
    return loss_of(model.logits(batch.tokens, gates), batch.targets)


def _train(model: Decoder, seed: int, loss: Any) -> None:
    of = task(TASK, TOKENS)
    training.train(model, of, Learning(model, of, GOAL, seed), seed, loss)


def _endings_right(logits: Tensor, targets: Tensor) -> float:
    """Of the verbs' endings, which are the last tokens."""
    return share_right(logits[:, -1:], targets[:, -1:])
