"""Gives the last group of query heads the keys and values of the first group."""

from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "times as far|checked rows are wrong"
PROBLEM = {"d_model": 128, "heads": 8, "kv_heads": 4}


def prepare(problem, inputs, weights):
    q, k, v = inputs
    heads = list(range(problem.kv_heads))
    heads[-1] = 0
    return lambda: scaled_dot_product_attention(q, k[:, heads], v[:, heads], enable_gqa=True)
