"""Attends causally and leaves the window of its problem out."""

from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "times as far|checked rows are wrong"
PROBLEM = {"causal": True, "mask": "local", "window": 64}
MASKS = ("local",)


def prepare(problem, inputs, weights):
    return lambda: scaled_dot_product_attention(*inputs, is_causal=True)
