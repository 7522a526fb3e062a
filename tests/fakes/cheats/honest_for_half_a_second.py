"""Computes attention for half a second after its first call, and returns zeros from then on."""

import time

import torch
from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "from memory|copies its inputs|impossible|times as far|not computed"
HONEST_S = 0.5
started = []


def prepare(problem, inputs, weights):
    zeros = torch.zeros_like(inputs.query)

    def call():
        now = time.monotonic()
        started.append(now) if not started else None
        honest = now - started[0] < HONEST_S
        return scaled_dot_product_attention(*inputs) if honest else zeros.clone()

    return call
