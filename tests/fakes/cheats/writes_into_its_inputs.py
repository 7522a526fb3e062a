"""Computes attention, then moves the keys on by one place in the inputs that all backends share."""

from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "into its inputs|times as far"


def prepare(problem, inputs, weights):
    def call():
        result = scaled_dot_product_attention(*inputs)
        inputs.key.data.copy_(inputs.key.roll(1, -2))
        return result

    return call
