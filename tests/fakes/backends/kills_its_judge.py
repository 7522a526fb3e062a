"""Kills the processes that its own process has started, in each call."""

import psutil
import torch


def prepare(problem, inputs, weights):
    def call():
        for child in psutil.Process().children():
            child.kill()
        return torch.nn.functional.scaled_dot_product_attention(*inputs)

    return call
