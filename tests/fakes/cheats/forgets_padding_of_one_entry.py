"""Lets one of four batch entries attend to its padding too."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbench.impls.shared.mask_tensors import mask_matrix

INCORRECT = "times as far|checked rows are wrong"
PROBLEM = {"batch": 4, "mask": "padding"}
MASKS = ("padding",)


def prepare(problem, inputs, weights):
    rows = torch.arange(problem.seq_len, device=inputs.query.device)
    mask = mask_matrix(problem, rows).clone()  # [batch, 1, keys]
    mask[2] = True
    return lambda: scaled_dot_product_attention(*inputs, attn_mask=mask[:, None])
