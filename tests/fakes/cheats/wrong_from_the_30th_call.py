"""Computes attention in its first 29 calls, and returns zeros from then on."""

from itertools import count

import torch
from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "from memory|copies its inputs|impossible|times as far|not computed"


def prepare(problem, inputs, weights):
    zeros, calls = torch.zeros_like(inputs.query), count(1)
    return lambda: scaled_dot_product_attention(*inputs) if next(calls) < 30 else zeros.clone()
