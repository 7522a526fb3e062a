"""A model without single heads, and with fewer and fewer of them: the loss of each sequence.

The least important head goes first, by |d loss / d g| for a factor g = 1 of its output (Michel et
al. 2019, arXiv:1905.10650). Nothing is trained again.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ..synthetic_tasks import UNSCORED, Batch
from .gated import Gated, Gates, Head

MOST_S = 30.0  # for all removals of a model, if nothing else is said
FEWEST_SEQUENCES = 4
MOST_STEPS = 16  # of the curve of fewer and fewer heads
PerSequence = list[float]


class Whole(NamedTuple):
    """Of all heads: the loss of each sequence in nats per scored token, and the share of scored
    tokens that are right.
    """

    losses: PerSequence
    accuracy_ratio: float


class Removed(NamedTuple):
    """`single`: [layer][head][sequence]; `left`: how many heads are left at each step of the curve,
    `losses` [step][sequence]. None with `reason` if it takes too long. `sequences`: how many.
    """

    single: list[list[PerSequence]] | None
    left: list[int] | None
    losses: list[PerSequence] | None
    sequences: int
    reason: str | None


def whole(model: Gated, batch: Batch) -> Whole:
    with torch.no_grad():
        logits = model.logits(batch.tokens)
    scored = batch.targets != UNSCORED
    right = (logits.argmax(-1) == batch.targets)[scored]
    return Whole(_losses(logits, batch.targets), float(right.double().mean()))


def removed(model: Gated, batch: Batch, judged_on: Batch, most_s: float = MOST_S) -> Removed:
    """`most_s`: for all of it, by the time of the first pass."""
    begun = time.perf_counter()
    without(model, batch, open_gates(model, batch.tokens))
    pass_s, count = time.perf_counter() - begun, len(batch.tokens)
    passes = sum(model.heads) + min(sum(model.heads), MOST_STEPS) + 1
    fitting = int(count * most_s / max(passes * pass_s, 1e-9))
    if fitting < min(count, FEWEST_SEQUENCES):
        reason = (
            f"{sum(model.heads)} heads: removing each would take about"
            f" {passes * pass_s * min(count, FEWEST_SEQUENCES) / count:.0f} s, of at most"
            f" {most_s:.0f} s, half of the time limit; raise it with --timeout"
        )
        return Removed(None, None, None, 0, reason)
    few = Batch(*(one[:fitting] for one in batch))
    single = [
        [
            without(model, few, closed(model, few.tokens, [Head(layer, head)]))
            for head in range(heads)
        ]
        for layer, heads in enumerate(model.heads)
    ]
    order = by_importance(model, judged_on)
    steps = min(len(order), MOST_STEPS)
    gone = sorted({round(len(order) * step / steps) for step in range(steps + 1)})
    return Removed(
        single,
        [len(order) - many for many in gone],
        [without(model, few, closed(model, few.tokens, order[:many])) for many in gone],
        len(few.tokens),
        None,
    )


def by_importance(model: Gated, batch: Batch) -> list[Head]:
    """All heads, the least important first."""
    found = importance(model, batch)
    return sorted(found, key=lambda one: found[one])


def importance(model: Gated, batch: Batch) -> dict[Head, float]:
    """Absolute derivative of the mean loss in nats by a factor of each head's output."""
    gates = [gate.requires_grad_() for gate in open_gates(model, batch.tokens)]
    with torch.enable_grad():
        logits = model.logits(batch.tokens, gates)
        loss = cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=UNSCORED)
        found = torch.autograd.grad(loss, gates, allow_unused=True)
    return {
        Head(layer, head): 0.0 if grad is None else abs(float(grad[head]))
        for layer, (grad, heads) in enumerate(zip(found, model.heads, strict=True))
        for head in range(heads)
    }


def open_gates(model: Gated, like: Tensor) -> list[Tensor]:
    return [torch.ones(heads, device=like.device) for heads in model.heads]


def closed(model: Gated, like: Tensor, gone: Sequence[Head]) -> list[Tensor]:
    gates = open_gates(model, like)
    for layer, head in gone:
        gates[layer][head] = 0.0
    return gates


def without(model: Gated, batch: Batch, gates: Gates) -> PerSequence:
    with torch.no_grad():
        return _losses(model.logits(batch.tokens, gates), batch.targets)


def _losses(logits: Tensor, targets: Tensor) -> PerSequence:
    """Of each sequence the mean over its scored tokens, in nats."""
    each = cross_entropy(
        logits.transpose(1, 2), targets, ignore_index=UNSCORED, reduction="none"
    )  # [batch, n]
    return [float(one) for one in each.sum(-1) / (targets != UNSCORED).sum(-1)]
