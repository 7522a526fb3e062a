"""A model whose heads can be weakened one by one, and what it does without some of them.

A factor g for the output of each head is 1 as a rule and 0 for a head that is removed. The least
important head goes first, by |d loss / d g| (Michel et al. 2019, arXiv:1905.10650), or those whose
removal is tried and raises the loss least. Nothing is trained again.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from ...impls.modules.block import Decoder
from .head_metrics import Heads, heads_of
from .synthetic_tasks import UNSCORED, Batch
from .training import loss_of

L = TypeVar("L")
Loss = Callable[[Tensor, Tensor], L]
"""Of logits [batch, n, vocabulary] and targets [batch, n], in nats per scored token."""


class Head(NamedTuple):
    """`block`: which of the layers with attention."""

    block: int
    head: int


Gates = Sequence[Tensor]
"""A factor for each head, [heads], of each layer with attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is said of a model beside what it does; findings have fields of these names.

    `layers`: the number of each layer with attention, as the model counts; `longest`: tokens of a
    sequence that it takes; None: no limit is known. `trained`: what its file says of its training.
    """

    format: str
    model_type: str
    d_model: int
    kv_heads: int
    vocabulary: int
    parameter_count: int
    layers: list[int]
    longest: int | None
    trained: dict[str, str]


class Gated(Protocol):
    """Of `heads`: how many each layer with attention has."""

    about: About
    heads: list[int]

    def logits(self, tokens: Tensor, gates: Gates | None = None) -> Tensor:
        """[batch, n, vocabulary] of tokens [batch, n]; with gates, differentiable by them."""

    def looked_at(self, tokens: Tensor) -> list[Heads]:
        """Weights [batch, heads, n, n] and outputs [batch, heads, n, d_v] of each layer."""


class GatedDecoder:
    """A decoder of impls/modules/block.py. A factor scales a head's columns of W_O."""

    def __init__(self, model: Decoder, trained: dict[str, str] | None = None) -> None:
        self.model, problem = model, model.problem
        self.heads = [problem.heads] * len(model.own_blocks)
        self.about = About(
            format="attnbench",
            model_type="decoder",
            d_model=problem.d_model,
            kv_heads=problem.kv_heads,
            vocabulary=model.embedding.num_embeddings,
            parameter_count=sum(one.numel() for one in model.parameters()),
            layers=[*range(len(self.heads))],
            longest=problem.seq_len,
            trained=trained or {},
        )

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

    def looked_at(self, tokens: Tensor) -> list[Heads]:
        return heads_of(self.model, tokens)


# ---- removed heads -------------------------------------------------------------------------------


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
    gates = gates_without(model, gone, batch.tokens)
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


def importance(model: Gated, batch: Batch, gone: Collection[Head] = ()) -> dict[Head, float]:
    """Absolute derivative of the mean loss in nats by a factor of each output of heads left."""
    gates = [gate.requires_grad_() for gate in gates_without(model, gone, batch.tokens)]
    with torch.enable_grad():
        loss = loss_of(model.logits(batch.tokens, gates), batch.targets)
        found = torch.autograd.grad(loss, gates, allow_unused=True)
    return {
        Head(layer, head): 0.0 if grad is None else abs(float(grad[head]))
        for layer, (grad, heads) in enumerate(zip(found, model.heads, strict=True))
        for head in range(heads)
        if (layer, head) not in gone
    }


def gates_without(model: Gated, gone: Collection[Head], like: Tensor) -> list[Tensor]:
    """0 for these heads and 1 for all others, on the device of `like`."""
    gates = [torch.ones(heads, device=like.device) for heads in model.heads]
    for layer, head in gone:
        gates[layer][head] = 0.0
    return gates
