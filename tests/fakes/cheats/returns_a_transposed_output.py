"""Honest: returns an output of its own that is not contiguous, as other layouts give."""

from torch.nn.functional import scaled_dot_product_attention

HONEST = True


def prepare(problem, inputs, weights):
    def call():
        result = scaled_dot_product_attention(*inputs)
        return result.transpose(1, 2).contiguous().transpose(1, 2)

    return call
