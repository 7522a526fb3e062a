"""Honest, and invisible to torch's allocator: all memory is numpy's."""

import torch

NEEDS = ("numpy",)


def prepare(problem, inputs, weights):
    import numpy as np

    scale = np.float32(problem.scale)

    def call():
        q, k, v = (x.numpy() for x in inputs)
        s = q @ k.swapaxes(-1, -2) * scale
        s = np.exp(s - s.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)
        return torch.from_numpy(s @ v)

    return call
