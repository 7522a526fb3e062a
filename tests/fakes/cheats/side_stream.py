"""Launches its work on a stream of its own, and only its first call waits for it."""

import torch
from torch.nn.functional import scaled_dot_product_attention

CONVICTED = (
    "stream|after the call|from memory|copies its inputs|impossible|times as far|not computed|NaN"
)
PROBLEM = {"seq_len": 2048}


def unavailable(device):
    return None if device.type == "cuda" else "a CPU has no streams"


def prepare(problem, inputs, weights):
    side = torch.cuda.Stream(inputs.query.device)
    calls = []

    def call():
        with torch.cuda.stream(side):
            result = scaled_dot_product_attention(*inputs)
        if not calls:
            calls.append(1)
            side.synchronize()
        return result

    return call
