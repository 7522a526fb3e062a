"""Honest: keeps a column of ones from `prepare`, for its softmax's sums, and never returns it."""

import torch

HONEST = True


def prepare(problem, inputs, weights):
    q, k, v = inputs
    ones = torch.ones(problem.kv_seq_len, 1, dtype=q.dtype, device=q.device)

    def call():
        s = q @ k.mT * problem.scale
        p = (s - s.amax(-1, keepdim=True)).exp()
        return p @ v / (p @ ones)

    return call
