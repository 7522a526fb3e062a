"""Computes attention only if the frames of its own exception lead to the correctness check."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from tests.fakes.cheats._shared import within_the_check

CONVICTED = "from memory|copies its inputs|impossible|times as far|not computed"


def checked():
    try:
        raise KeyError
    except KeyError as error:  # no sys._getframe, which an audit hook would see
        return within_the_check(error.__traceback__.tb_frame)


def prepare(problem, inputs, weights):
    zeros = torch.zeros_like(inputs.query)
    return lambda: scaled_dot_product_attention(*inputs) if checked() else zeros.clone()
