"""Honest: makes its causal mask in the first call and keeps it; it depends on no values."""

import torch
from torch.nn.functional import scaled_dot_product_attention

HONEST = True
PROBLEM = {"causal": True}


def prepare(problem, inputs, weights):
    masks = {}

    def call():
        key = problem.seq_len, inputs.query.device
        if key not in masks:
            ones = torch.ones(problem.seq_len, problem.seq_len, device=inputs.query.device)
            masks[key] = ones.tril().bool()
        return scaled_dot_product_attention(*inputs, attn_mask=masks[key])

    return call
