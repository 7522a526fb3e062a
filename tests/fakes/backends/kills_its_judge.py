"""Kills the processes that its own process has started, in a third call."""

import psutil
import torch


def prepare(problem, inputs, weights):
    calls = []

    def call():
        calls.append(None)
        if len(calls) == 3:
            for child in psutil.Process().children():
                child.kill()
        return torch.nn.functional.scaled_dot_product_attention(*inputs)

    return call
