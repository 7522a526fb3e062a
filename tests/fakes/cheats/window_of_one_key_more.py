"""Lets each query see one key more to either side than its window has."""

import torch
from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "times as far|checked rows are wrong"
PROBLEM = {"seq_len": 1024, "mask": "local", "window": 64}
MASKS = ("local",)


def prepare(problem, inputs, weights):
    places = torch.arange(problem.seq_len, device=inputs.query.device)
    mask = (places - places[:, None]).abs() <= problem.window + 1
    return lambda: scaled_dot_product_attention(*inputs, attn_mask=mask)
