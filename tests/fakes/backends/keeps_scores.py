"""Honest, and looks small: a buffer for the scores is kept from `prepare` on."""

import torch


def prepare(problem, inputs, weights):
    p = problem
    scores = inputs.query.new_empty(p.batch, p.heads, p.seq_len, p.kv_seq_len)

    def call():
        q, k, v = inputs
        torch.matmul(q, k.mT, out=scores).mul_(p.scale)
        torch.softmax(scores, -1, out=scores)
        return scores @ v

    return call
