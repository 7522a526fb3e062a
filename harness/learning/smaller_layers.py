"""Attention layers without the weights of removed heads, and what they cost.

A removed head's rows of W_Q, W_K and W_V and its columns of W_O are gone, so that the layer is the
smaller one that a pruned model would have. A layer without any head is the bias of W_O.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ...impls.block import Decoder
from ...impls.multi_head_attention import NAMES, MultiHeadAttention
from ..measure.peak_memory import peak
from ..stats.intervals import latency_interval, ratio_interval
from ..studies.output_share import timed
from .checkpoints.gated import Head
from .synthetic_tasks import Batch
from .training import loss_of

Layer = Callable[[Tensor], Tensor]
"""From normalized x to the output, both [batch, n, d_model]."""


def smaller_layers(model: Decoder, gone: Sequence[Head]) -> list[Layer]:
    """Of each block of a decoder, the layer without these heads."""
    return [
        smaller_layer(
            block.attention,
            [one for one in range(model.problem.heads) if Head(place, one) not in gone],
        )
        for place, block in enumerate(model.own_blocks)
    ]


def smaller_layer(whole: MultiHeadAttention, kept: Sequence[int]) -> Layer:
    w, p = whole.weights(), whole.problem
    if not kept:
        return w.b_o.expand_as
    problem = replace(p, heads=len(kept), kv_heads=len(kept), d_k=p.d_k, d_v=p.d_v)
    layer = MultiHeadAttention(problem, whole.backend, w.w_o.device)
    of_k, of_v = (_places(kept, width).to(w.w_o.device) for width in (p.d_k, p.d_v))
    with torch.no_grad():
        for name in NAMES:
            own, places = getattr(layer, name), of_v if name.endswith("_v") else of_k
            given = getattr(w, name)
            if name == "w_o":
                own.copy_(given[:, of_v])
            elif name != "b_o":
                own.copy_(given[places])
            else:
                own.copy_(given)
    return lambda x: layer(x, x, x)[0]


FIELDS = (
    *("pruned_layer_ms", "pruned_layer_time_ratio"),
    *("pruned_layer_time_low_ratio", "pruned_layer_time_high_ratio"),
    *("pruned_layer_peak_bytes", "pruned_layer_weight_bytes", "smaller_loss_nats"),
)


def cost(model: Decoder, order: Sequence[Head], batch: Batch) -> dict[str, Any]:
    """FIELDS, each with 0, 1, ... heads removed in this order: of all attention layers, forward.

    The ratio of times is over those with all heads, in the same blocks; the peak is that of the
    layer that takes most; the loss is that of the decoder with the smaller layers.
    """
    device, counts = batch.tokens.device, range(len(order) + 1)
    with torch.no_grad():
        inputs = _inputs(model, batch)
        layers = [smaller_layers(model, order[:count]) for count in counts]
        samples = timed(tuple(partial(_forward, some, inputs) for some in layers), device).samples
        ratios = [ratio_interval(one, samples[0]) for one in samples]
        found = (
            [latency_interval(one).value for one in samples],
            [one.value for one in ratios],
            [one.low for one in ratios],
            [one.high for one in ratios],
            [_peak_bytes(some, inputs, device) for some in layers],
            [_weight_bytes(model, order[:count]) for count in counts],
            [_loss(model, some, batch) for some in layers],
        )
    return dict(zip(FIELDS, found, strict=True))


def _inputs(model: Decoder, batch: Batch) -> list[Tensor]:
    """Of each attention layer, with all heads: [batch, n, d_model]."""
    x, found = model.embed(batch.tokens), []
    for block in model.own_blocks:
        found.append(block.norm_1(x))
        x, _ = block(x)
    return found


def _forward(layers: Sequence[Layer], inputs: Sequence[Tensor]) -> None:
    for layer, x in zip(layers, inputs, strict=True):
        layer(x)


def _peak_bytes(
    layers: Sequence[Layer], inputs: Sequence[Tensor], device: torch.device
) -> int | None:
    found = [
        peak(lambda: None, partial(_called, layer, x), device).peak_bytes
        for layer, x in zip(layers, inputs, strict=True)
    ]
    known = [one for one in found if one is not None]
    return max(known) if len(known) == len(found) else None


def _called(layer: Layer, x: Tensor, _: object) -> Tensor:
    return layer(x)


def _weight_bytes(model: Decoder, gone: Sequence[Head]) -> int:
    """Of the attention layers."""
    p = model.problem
    of_head = 2 * (p.d_k + p.d_v) * p.d_model + 2 * p.d_k + p.d_v
    left = len(model.own_blocks) * p.heads - len(gone)
    return (left * of_head + len(model.own_blocks) * p.d_model) * p.item_bytes


def _loss(model: Decoder, layers: Sequence[Layer], batch: Batch) -> float:
    x = model.embed(batch.tokens)
    for block, layer in zip(model.own_blocks, layers, strict=True):
        y = x + layer(block.norm_1(x))
        x = y + block.feed_forward(block.norm_2(y))
    return float(loss_of(model.logits(model.norm(x)), batch.targets))


def _places(kept: Sequence[int], width: int) -> Tensor:
    """Of these heads' numbers in a width of all heads."""
    return (torch.tensor(kept)[:, None] * width + torch.arange(width)).flatten()
