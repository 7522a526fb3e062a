"""A model without some of its heads: without one alone, and without more and more of them.

The least important head goes first, by |d loss / d g| for a factor g = 1 of its output (Michel et
al. 2019, arXiv:1905.10650), or those whose removal is tried and raises the loss least. Nothing is
trained again.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from .gated import Gated, Head
from .synthetic_tasks import UNSCORED, Batch
from .training import loss_of

L = TypeVar("L")
Loss = Callable[[Tensor, Tensor], L]
"""Of logits [batch, n, vocabulary] and targets [batch, n], in nats per scored token."""


def mean(logits: Tensor, targets: Tensor) -> float:
    """Over all scored tokens."""
    return float(loss_of(logits, targets))


def of_sequences(logits: Tensor, targets: Tensor) -> list[float]:
    """Of each sequence the mean over its scored tokens."""
    each = cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=UNSCORED, reduction="none"
    )  # [batch, n]
    return [float(one) for one in each.sum(-1) / (targets != UNSCORED).sum(-1)]


def every_head(model: Gated) -> list[Head]:
    return [Head(layer, one) for layer, heads in enumerate(model.heads) for one in range(heads)]


def without(model: Gated, gone: Collection[Head], batch: Batch, loss: Loss[L]) -> L:
    """The loss without these heads."""
    gates = open_gates(model, batch.tokens)
    for layer, head in gone:
        gates[layer][head] = 0.0
    with torch.no_grad():
        return loss(model.logits(batch.tokens, gates), batch.targets)


def single(model: Gated, batch: Batch, loss: Loss[L]) -> list[list[L]]:
    """Without one head, [layer][head]."""
    return [
        [without(model, [Head(layer, one)], batch, loss) for one in range(heads)]
        for layer, heads in enumerate(model.heads)
    ]


def in_order(
    model: Gated, order: Sequence[Head], removed_heads: Iterable[int], batch: Batch, loss: Loss[L]
) -> list[L]:
    """With so many heads removed, the first ones of `order`."""
    return [without(model, order[:count], batch, loss) for count in removed_heads]


def greedily(
    model: Gated, removed_heads: Iterable[int], batch: Batch, judged_on: Batch, loss: Loss[L]
) -> list[L]:
    """With so many heads removed, from none on.

    Before each step every head that is left is tried alone; the next to go are those that raise the
    loss of `judged_on` least. In steps of one head this is the greedy search. In k steps it takes
    about (k + 1) / 2 trials per head.
    """
    gone: list[Head] = []
    losses = []
    for count in removed_heads:
        if more := count - len(gone):
            left = [one for one in every_head(model) if one not in gone]
            trials = {one: without(model, [*gone, one], judged_on, mean) for one in left}
            gone += sorted(left, key=lambda one: trials[one])[:more]
        losses.append(without(model, gone, batch, loss))
    return losses


def counts(heads: int, most: int) -> list[int]:
    """How many heads are removed, from none to all, in at most so many steps of one size."""
    return [*range(0, heads, -(-heads // most)), heads]


def by_importance(model: Gated, batch: Batch) -> list[Head]:
    """All heads, the least important first."""
    found = importance(model, batch)
    return sorted(found, key=lambda one: found[one])


def importance(model: Gated, batch: Batch) -> dict[Head, float]:
    """Absolute derivative of the mean loss in nats by a factor of each head's output."""
    gates = [gate.requires_grad_() for gate in open_gates(model, batch.tokens)]
    with torch.enable_grad():
        loss = loss_of(model.logits(batch.tokens, gates), batch.targets)
        found = torch.autograd.grad(loss, gates, allow_unused=True)
    return {
        Head(layer, head): 0.0 if grad is None else abs(float(grad[head]))
        for layer, (grad, heads) in enumerate(zip(found, model.heads, strict=True))
        for head in range(heads)
    }


def open_gates(model: Gated, like: Tensor) -> list[Tensor]:
    return [torch.ones(heads, device=like.device) for heads in model.heads]
