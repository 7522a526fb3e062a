"""Attention layers without the weights of removed heads, and what they cost.

A removed head's rows of W_Q, W_K and W_V and its columns of W_O are gone, so that the layer is the
smaller one that a pruned model would have. A layer without any head is the bias of W_O.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...impls.block import Decoder
from ...impls.multi_head_attention import NAMES, MultiHeadAttention
from ..measure.peak_memory import peak
from ..stats.intervals import latency_interval, ratio_interval
from ..studies.output_share import timed
from .removal import Head
from .synthetic_tasks import Batch
from .training import quality


class NoHeads(nn.Module):
    """Called as MultiHeadAttention is."""

    def __init__(self, bias: Tensor) -> None:
        super().__init__()
        self.b_o = nn.Parameter(bias.clone())

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, need_weights: bool = False
    ) -> tuple[Tensor, None]:
        return self.b_o.expand_as(query), None


def smaller_layer(whole: MultiHeadAttention, kept: Sequence[int]) -> nn.Module:
    w, p = whole.weights(), whole.problem
    if not kept:
        return NoHeads(w.b_o)
    problem = replace(p, heads=len(kept), kv_heads=len(kept), d_k=p.d_k, d_v=p.d_v)
    layer = MultiHeadAttention(problem, whole.backend, w.w_o.device)
    of_k, of_v = (_places(kept, width).to(w.w_o.device) for width in (p.d_k, p.d_v))
    with torch.no_grad():
        for name in NAMES:
            given = getattr(w, name)
            if name == "w_o":
                given = given[:, of_v]
            elif name != "b_o":
                given = given[of_v if name.endswith("_v") else of_k]
            getattr(layer, name).copy_(given)
    return layer


def smaller_decoder(model: Decoder, gone: Sequence[Head]) -> Decoder:
    """A copy whose attention layers lack these heads."""
    found = deepcopy(model)
    for place, block in enumerate(found.own_blocks):
        kept = [one for one in range(model.problem.heads) if Head(place, one) not in gone]
        block.add_module("attention", smaller_layer(block.attention, kept))
    return found


def cost(model: Decoder, order: Sequence[Head], batch: Batch) -> dict[str, Any]:
    """Fields of a finding, with 0, 1, ... heads removed in this order: of all layers, forward.

    The ratio of times is over those with all heads, in the same blocks; the peak is that of the
    layer that takes most; the loss is that of the decoder with the smaller layers.
    """
    models = [smaller_decoder(model, order[:count]) for count in range(len(order) + 1)]
    device, layers = batch.tokens.device, [[b.attention for b in one.own_blocks] for one in models]
    with torch.no_grad():
        inputs = _inputs(model, batch)
        samples = timed(tuple(partial(_forward, some, inputs) for some in layers), device).samples
        ratios = [ratio_interval(one, samples[0]) for one in samples]
        return {
            "pruned_layer_ms": [latency_interval(one).value for one in samples],
            "pruned_layer_time_ratio": [one.value for one in ratios],
            "pruned_layer_time_low_ratio": [one.low for one in ratios],
            "pruned_layer_time_high_ratio": [one.high for one in ratios],
            "pruned_layer_peak_bytes": [_peak_bytes(some, inputs, device) for some in layers],
            "pruned_layer_weight_bytes": [
                sum(w.nbytes for layer in some for w in layer.parameters()) for some in layers
            ],
            "smaller_loss_nats": [quality(one, batch)[0] for one in models],
        }


def _inputs(model: Decoder, batch: Batch) -> list[Tensor]:
    """Of each attention layer, with all heads: [batch, n, d_model]."""
    x, found = model.embed(batch.tokens), []
    for block in model.own_blocks:
        found.append(block.norm_1(x))
        x, _ = block(x)
    return found


def _forward(layers: Sequence[nn.Module], inputs: Sequence[Tensor]) -> None:
    for layer, x in zip(layers, inputs, strict=True):
        layer(x, x, x)


def _peak_bytes(
    layers: Sequence[nn.Module], inputs: Sequence[Tensor], device: torch.device
) -> int | None:
    found = []
    for layer, x in zip(layers, inputs, strict=True):
        one = peak(lambda: None, lambda _: layer(x, x, x)[0], device).peak_bytes  # noqa: B023
        if one is None:
            return None
        found.append(one)
    return max(found)


def _places(kept: Sequence[int], width: int) -> Tensor:
    """Of these heads' numbers in a width of all heads."""
    return (torch.tensor(kept)[:, None] * width + torch.arange(width)).flatten()
