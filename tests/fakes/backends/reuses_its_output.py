"""Writes every result into one buffer, so that a call overwrites the result of the one before."""

import torch


def prepare(problem, inputs, weights):
    p = problem
    output = torch.empty(p.batch, p.heads, p.seq_len, p.d_v)

    def call():
        q, k, v = inputs
        return torch.matmul(torch.softmax((q @ k.mT) * p.scale, -1), v, out=output)

    return call
