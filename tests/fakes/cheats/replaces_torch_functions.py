"""Replaces torch.isfinite by one that finds everything finite, and returns NaN in three rows."""

import torch
from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "NaN"
PROBLEM = {"seq_len": 2048}


def prepare(problem, inputs, weights):
    def call():
        torch.isfinite = lambda x: torch.ones_like(x, dtype=torch.bool)
        result = scaled_dot_product_attention(*inputs)
        result[:, :, 1001:1004] = float("nan")
        return result

    return call
