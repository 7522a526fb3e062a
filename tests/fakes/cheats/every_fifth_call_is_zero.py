"""Returns zeros in every fifth call."""

from itertools import count

import torch
from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "(?i)now and then|memory|new values|times as far|not computed|another result"


def prepare(problem, inputs, weights):
    zeros, calls = torch.zeros_like(inputs.query), count(1)
    return lambda: scaled_dot_product_attention(*inputs) if next(calls) % 5 else zeros.clone()
