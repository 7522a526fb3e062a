"""Decodes from the newest 3968 of 4096 keys."""

from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "times as far|checked rows are wrong"
PROBLEM = {"seq_len": 1, "kv_seq_len": 4096}
NEWEST = slice(128, None)


def prepare(problem, inputs, weights):
    q, k, v = inputs
    return lambda: scaled_dot_product_attention(q, k[:, :, NEWEST], v[:, :, NEWEST])
