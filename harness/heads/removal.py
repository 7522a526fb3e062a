"""A model whose heads can be removed: a factor for the output of each, and which to remove first.

The factor g of a head's output is 1, and 0 if the head is removed. A head is as important as
|d loss / d g| is large (Michel et al. 2019, arXiv:1905.10650).
"""

from collections.abc import Collection, Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from ...impls.modules.block import Decoder
from .synthetic_tasks import UNSCORED, Batch

Gates = Sequence[Tensor]
"""A factor for each head, [heads], of each layer with attention."""
Head = tuple[int, int]
"""Which of the layers with attention, and which of its heads; both count from 0."""


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


def without(model: Gated, gone: Collection[Head], batch: Batch) -> list[float]:
    """Without these heads: each sequence's loss in nats per scored token."""
    with torch.no_grad():
        logits = model.logits(batch.tokens, gates_without(model, gone, batch.tokens))
    each = cross_entropy(logits.mT, batch.targets, ignore_index=UNSCORED, reduction="none")
    found: list[float] = (each.sum(-1) / (batch.targets != UNSCORED).sum(-1)).tolist()
    return found


def importance(model: Gated, batch: Batch, gone: Collection[Head] = ()) -> dict[Head, float]:
    """Absolute derivative of the mean loss in nats by a factor of each output of heads left, the
    least important first.
    """
    gates = [gate.requires_grad_() for gate in gates_without(model, gone, batch.tokens)]
    loss = loss_of(model.logits(batch.tokens, gates), batch.targets)
    grads = torch.autograd.grad(loss, gates, materialize_grads=True)
    found = {
        (block, head): abs(number)
        for block, grad in enumerate(grads)
        for head, number in enumerate(grad.tolist())
        if (block, head) not in gone
    }
    return dict(sorted(found.items(), key=lambda one: one[1]))


def gates_without(model: Gated, gone: Collection[Head], like: Tensor) -> list[Tensor]:
    """0 for these heads and 1 for all others, on the device of `like`."""
    gates = [torch.ones(heads, device=like.device) for heads in model.heads]
    for block, head in gone:
        gates[block][head] = 0.0
    return gates
