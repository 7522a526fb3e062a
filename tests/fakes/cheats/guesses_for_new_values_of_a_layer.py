"""A layer that keeps its results of the values that were checked, and guesses those of others."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbench.impls.layer import as_call

CONVICTED = "from memory|copies its inputs|times as far|impossible"
PROBLEM = {"seq_len": 512, "scope": "layer"}
CHECKED = 4  # calls with values that are checked


def prepare(problem, inputs, weights):
    layer, kept = as_call(problem, inputs, weights, scaled_dot_product_attention), {}

    def call():
        row = inputs.query[0, -1]
        key = tuple(row.tolist())
        if key not in kept and len(kept) < CHECKED:
            kept[key] = layer()
        if key in kept:
            return kept[key].clone()
        first = next(iter(kept.values()))
        return first * (1 + 0.1 * torch.sin(100 * row).sum())  # another result for other values

    return call
