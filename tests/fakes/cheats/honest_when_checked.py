"""Computes attention only while the harness's correctness check is on the call stack."""

import sys

import torch
from torch.nn.functional import scaled_dot_product_attention

from tests.fakes.cheats._shared import within_the_check

CONVICTED = "from memory|copies its inputs|impossible|times as far|not computed"


def prepare(problem, inputs, weights):
    zeros = torch.zeros_like(inputs.query)
    return lambda: (
        scaled_dot_product_attention(*inputs)
        if within_the_check(sys._getframe())
        else zeros.clone()
    )
