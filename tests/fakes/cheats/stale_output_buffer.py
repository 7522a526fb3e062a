"""Returns the same buffer each time, so that a result overwrites the one before."""

import torch
from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "of its own|same memory|after the call"


def prepare(problem, inputs, weights):
    buffer = torch.empty_like(inputs.query)
    return lambda: buffer.copy_(scaled_dot_product_attention(*inputs))
