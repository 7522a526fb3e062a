"""Returns zeros in every fifth call."""

from itertools import count

import torch
from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "from memory|copies its inputs|times as far|not computed"
TRIES = 25  # one block in each process is judged: of one process it passes 4 in 5


def prepare(problem, inputs, weights):
    zeros, calls = torch.zeros_like(inputs.query), count(1)
    return lambda: scaled_dot_product_attention(*inputs) if next(calls) % 5 else zeros.clone()
