"""Returns an empty output and fills it half a millisecond later, unless it is called again."""

import signal

import torch
from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "after the call|from memory|copies its inputs|impossible|times as far|not computed|NaN"
WAIT_S = 0.0005


def prepare(problem, inputs, weights):
    unfilled = []

    def fill(*_):
        while unfilled:
            unfilled.pop().copy_(scaled_dot_product_attention(*inputs))

    signal.signal(signal.SIGALRM, fill)
    calls = []

    def call():
        unfilled[:] = [torch.empty_like(inputs.query)]
        out = unfilled[0]
        if calls:
            signal.setitimer(signal.ITIMER_REAL, WAIT_S)
        else:  # the first call is the one that looks slow anyway
            calls.append(1)
            fill()
        return out

    return call
