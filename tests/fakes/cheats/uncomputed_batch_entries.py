"""Computes the first and the last of 40 batch entries, and leaves the others zero."""

import torch
from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "times as far|not computed|not zero"
PROBLEM = {"batch": 40, "seq_len": 128, "kv_seq_len": 4096}
ENDS = [0, -1]


def prepare(problem, inputs, weights):
    def call():
        result = torch.zeros_like(inputs.query)
        result[ENDS] = scaled_dot_product_attention(*(x[ENDS] for x in inputs))
        return result

    return call
