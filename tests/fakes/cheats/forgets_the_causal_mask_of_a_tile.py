"""Lets the last 16 of 2048 queries see the keys of their whole tile, later ones too."""

import torch
from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "times as far|checked rows are wrong"
PROBLEM = {"seq_len": 2048, "causal": True}
TILE = 16


def prepare(problem, inputs, weights):
    keys = torch.arange(problem.kv_seq_len, device=inputs.query.device)
    last_key = keys.clone()  # that a query sees
    last_key[-TILE:] = problem.kv_seq_len - 1
    mask = keys <= last_key[:, None]
    return lambda: scaled_dot_product_attention(*inputs, attn_mask=mask)
