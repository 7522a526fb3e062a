"""Computes attention, then moves the keys on by one place in the inputs that all backends share."""

from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "(?i)into its inputs"


def prepare(problem, inputs, weights):
    def call():
        result = scaled_dot_product_attention(*inputs)
        inputs.key.data.copy_(inputs.key.roll(1, -2))
        return result

    return call
