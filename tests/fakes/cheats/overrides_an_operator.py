"""Puts a norm that is always zero in the place of torch's, by torch.library."""

import torch
from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "times as far"

library = torch.library.Library("aten", "IMPL")
library.impl("linalg_vector_norm", lambda x, *_, **__: x.new_zeros(()), "CPU")


def unavailable(device):
    return None if device.type == "cpu" else "it overrides the CPU's operator"


def prepare(problem, inputs, weights):
    return lambda: scaled_dot_product_attention(*inputs, scale=1.1 * problem.scale)
