"""Heads of a trained decoder removed: one alone, and more and more of them, singly or in groups.

A head is removed by zeroing its columns of W_O, which gives what the layer without it would give.
The order by importance is that of checkpoints/removal.py.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from ...impls.block import Block, Decoder
from .checkpoints.gated import Head
from .synthetic_tasks import Batch
from .training import loss_of, quality


def every_head(model: Decoder) -> list[Head]:
    return [Head(b, h) for b in range(len(model.blocks)) for h in range(model.problem.heads)]


def single_losses(model: Decoder, batch: Batch) -> list[list[float | None]]:
    """Loss in nats without one head, [block][head]."""
    found: list[list[float | None]] = [[] for _ in model.blocks]
    for one in every_head(model):
        with removed(model, [one]):
            found[one.block].append(quality(model, batch)[0])
    return found


def counts(heads: int, most: int) -> list[int]:
    """How many heads are removed, from none to all, in at most so many steps of one size."""
    return [*range(0, heads, -(-heads // most)), heads]


def losses_in_order(
    model: Decoder, order: Sequence[Head], removed_heads: Iterable[int], batch: Batch
) -> list[float]:
    """Loss with so many heads removed, the first ones of `order`."""
    return [_loss_without(model, order[:count], batch) for count in removed_heads]


def losses_greedily(
    model: Decoder, removed_heads: Sequence[int], batch: Batch, judged_on: Batch
) -> list[float]:
    """Loss with so many heads removed, from none on.

    Before each step every head that is left is tried alone; the next to go are those that raise the
    loss of `judged_on` least. In steps of one head this is the greedy search. In k steps it takes
    about (k + 1) / 2 trials per head.
    """
    gone: list[Head] = []
    losses = []
    for count in removed_heads:
        if more := count - len(gone):
            trials = _trials(model, gone, judged_on)
            gone += sorted(trials, key=lambda one: trials[one])[:more]
        losses.append(_loss_without(model, gone, batch))
    return losses


@contextmanager
def removed(model: Decoder, heads: Iterable[Head]) -> Iterator[None]:
    """The decoder without these heads."""
    before = [_w_o(model, block).detach().clone() for block in range(len(model.blocks))]
    with torch.no_grad():
        for one in heads:
            _w_o(model, one.block)[:, _columns(model, one)] = 0
    try:
        yield
    finally:
        with torch.no_grad():
            for block, whole in enumerate(before):
                _w_o(model, block).copy_(whole)


def _trials(model: Decoder, gone: Sequence[Head], batch: Batch) -> dict[Head, float]:
    """Loss without these heads and one more, of each that is left.

    What comes before a head's block is computed once for all heads of the block.
    """
    found = {}
    left = [one for one in every_head(model) if one not in gone]
    with torch.no_grad(), removed(model, gone):
        x = model.embed(batch.tokens)
        for place, block in enumerate(model.own_blocks):
            for one in (one for one in left if one.block == place):
                with removed(model, [one]):
                    y = x
                    for later in model.own_blocks[place:]:
                        y, _ = later(y)
                    found[one] = float(loss_of(model.logits(model.norm(y)), batch.targets))
            x, _ = block(x)
    return found


def _loss_without(model: Decoder, heads: Iterable[Head], batch: Batch) -> float:
    with removed(model, heads):
        return quality(model, batch)[0]


def _w_o(model: Decoder, block: int) -> Tensor:
    found = model.blocks[block]
    assert isinstance(found, Block)
    return found.attention.weights().w_o


def _columns(model: Decoder, one: Head) -> slice:
    width = model.problem.d_v
    return slice(one.head * width, (one.head + 1) * width)
