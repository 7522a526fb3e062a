"""Lowers the precision of fp32 matrix products when its file is imported."""

import torch
from torch.nn.functional import scaled_dot_product_attention

CONTAINED = "the setting is one of its own process"
INCORRECT_WITH_AMX = "in a timed call: .* times as far from the exact result"

torch.set_float32_matmul_precision("medium")


def prepare(problem, inputs, weights):
    return lambda: scaled_dot_product_attention(*inputs)
