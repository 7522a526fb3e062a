"""Honest: computes its heads in two threads and waits for both before it returns."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch.nn.functional import scaled_dot_product_attention

HONEST = True


def prepare(problem, inputs, weights):
    q, k, v = inputs
    pool = ThreadPoolExecutor(2)

    def head(i):
        with torch.no_grad():  # each thread has a gradient mode of its own
            return scaled_dot_product_attention(q[:, i], k[:, i], v[:, i])

    return lambda: torch.stack(list(pool.map(head, range(problem.heads))), 1)
