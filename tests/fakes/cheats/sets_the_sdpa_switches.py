"""Switches torch's flash attention off in its calls, so that other backends lose it."""

import torch
from torch.nn.functional import scaled_dot_product_attention

CONTAINED = "the setting is one of its own process"


def prepare(problem, inputs, weights):
    def call():
        result = scaled_dot_product_attention(*inputs)
        torch.backends.cuda.enable_flash_sdp(False)  # it counts on a CPU too
        return result

    return call
