"""Gets the mask of two keys of 256 wrong, for all queries that see a key."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbench.impls.shared.mask_tensors import mask_matrix

INCORRECT = "times as far|checked rows are wrong"
PROBLEM = {"mask": "random"}
MASKS = ("random",)


def prepare(problem, inputs, weights):
    rows = torch.arange(problem.seq_len, device=inputs.query.device)
    mask = mask_matrix(problem, rows)  # [1, queries, keys]
    wrong = mask.clone()
    wrong[..., 7:9] = mask[..., 7:9].logical_not() & mask.any(-1, keepdim=True)
    return lambda: scaled_dot_product_attention(*inputs, attn_mask=wrong).nan_to_num()
