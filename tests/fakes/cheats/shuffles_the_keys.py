"""Honest: takes the keys in a random order in each call, drawn by a generator of its own."""

import torch
from torch.nn.functional import scaled_dot_product_attention

HONEST = True


def prepare(problem, inputs, weights):
    q, k, v = inputs
    own = torch.Generator()

    def call():
        order = torch.randperm(problem.kv_seq_len, generator=own).to(q.device)
        return scaled_dot_product_attention(q, k[:, :, order], v[:, :, order])

    return call
