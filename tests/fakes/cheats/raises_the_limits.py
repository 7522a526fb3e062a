"""Raises the limits of the correctness check, which are variables of its module, and errs."""

from torch.nn.functional import scaled_dot_product_attention

from attnbench.harness.measure import error_limits

CONVICTED = "times as far"

error_limits.LIMIT_RATIO = error_limits.ROW_LIMIT_RATIO = 1e9


def prepare(problem, inputs, weights):
    return lambda: scaled_dot_product_attention(*inputs, scale=1.1 * problem.scale)
