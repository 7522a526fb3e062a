"""Scales its scores by half a percent too much."""

from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "times as far"


def prepare(problem, inputs, weights):
    return lambda: scaled_dot_product_attention(*inputs, scale=1.005 * problem.scale)
