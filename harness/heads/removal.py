"""A model whose heads can be removed: a factor for the output of each, and which to remove first.

The factor g of a head's output is 1, and 0 if the head is removed. A head is as important as
|d loss / d g| is large (Michel et al. 2019, arXiv:1905.10650).
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from ...impls.modules.block import Decoder
from .synthetic_tasks import UNSCORED, Batch

L = TypeVar("L")
Loss = Callable[[Tensor, Tensor], L]
"""Of logits [batch, n, vocabulary] and targets [batch, n], in nats per scored token."""
Gates = Sequence[Tensor]
"""A factor for each head, [heads], of each layer with attention."""


class Head(NamedTuple):
    """`block`: which of the layers with attention; both count from 0."""

    block: int
    head: int


class Gated(Protocol):
    """`heads`: how many each layer with attention has."""

    heads: list[int]

    def logits(self, tokens: Tensor, gates: Gates | None = None) -> Tensor:
        """[batch, n, vocabulary] of tokens [batch, n]; with gates, differentiable by them."""


class GatedDecoder:
    """A decoder of impls/modules/block.py. A factor scales a head's columns of W_O."""

    def __init__(self, model: Decoder) -> None:
        self.model = model
        self.heads = [model.problem.heads] * len(model.own_blocks)

    def logits(self, tokens: Tensor, gates: Gates | None = None) -> Tensor:
        if gates is None:
            whole: Tensor = self.model(tokens)[0]
            return whole
        width = self.model.problem.d_v
        scaled = {
            f"blocks.{number}.attention.w_o": block.attention.weights().w_o
            * gate.repeat_interleave(width)
            for number, (block, gate) in enumerate(zip(self.model.own_blocks, gates, strict=True))
        }
        found: tuple[Tensor, list[Tensor]] = functional_call(self.model, scaled, (tokens,))
        return found[0]


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """In nats per scored token."""
    return cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=UNSCORED)


def mean(logits: Tensor, targets: Tensor) -> float:
    """Over all scored tokens."""
    return float(loss_of(logits, targets))


def of_sequences(logits: Tensor, targets: Tensor) -> list[float]:
    """Of each sequence the mean over its scored tokens."""
    each = cross_entropy(logits.mT, targets, ignore_index=UNSCORED, reduction="none")  # [batch, n]
    found: list[float] = (each.sum(-1) / (targets != UNSCORED).sum(-1)).tolist()
    return found


def without(model: Gated, gone: Collection[Head], batch: Batch, loss: Loss[L]) -> L:
    """The loss without these heads."""
    gates = gates_without(model, gone, batch.tokens)
    with torch.no_grad():
        return loss(model.logits(batch.tokens, gates), batch.targets)


def by_importance(model: Gated, batch: Batch) -> list[Head]:
    """All heads, the least important first."""
    found = importance(model, batch)
    return sorted(found, key=lambda one: found[one])


def importance(model: Gated, batch: Batch, gone: Collection[Head] = ()) -> dict[Head, float]:
    """Absolute derivative of the mean loss in nats by a factor of each output of heads left."""
    gates = [gate.requires_grad_() for gate in gates_without(model, gone, batch.tokens)]
    with torch.enable_grad():
        loss = loss_of(model.logits(batch.tokens, gates), batch.targets)
        found = torch.autograd.grad(loss, gates, allow_unused=True)
    return {
        Head(block, head): 0.0 if grad is None else abs(float(grad[head]))
        for block, (grad, heads) in enumerate(zip(found, model.heads, strict=True))
        for head in range(heads)
        if (block, head) not in gone
    }


def gates_without(model: Gated, gone: Collection[Head], like: Tensor) -> list[Tensor]:
    """0 for these heads and 1 for all others, on the device of `like`."""
    gates = [torch.ones(heads, device=like.device) for heads in model.heads]
    for block, head in gone:
        gates[block][head] = 0.0
    return gates
