"""Replaces torch's attention by one that works twice, for the baseline that is timed beside it."""

import torch
from torch.nn.functional import scaled_dot_product_attention

CONTAINED = "the baseline beside it is slower than in its own worker, and the answer says so"


def twice(*inputs, **more):
    scaled_dot_product_attention(*inputs, **more)
    return scaled_dot_product_attention(*inputs, **more)


torch.nn.functional.scaled_dot_product_attention = twice


def prepare(problem, inputs, weights):
    return lambda: scaled_dot_product_attention(*inputs)
