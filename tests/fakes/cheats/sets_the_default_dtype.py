"""Sets torch's default dtype in its calls."""

import torch
from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "scalar type|dtype"


def prepare(problem, inputs, weights):
    def call():
        torch.set_default_dtype(torch.float64)
        return scaled_dot_product_attention(*inputs)

    return call
