"""Gives 16 neighbouring queries of 2048 the mean of the values instead of attention."""

from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "times as far"
PROBLEM = {"seq_len": 2048}
TILE = slice(1008, 1024)


def prepare(problem, inputs, weights):
    def call():
        result = scaled_dot_product_attention(*inputs)
        result[:, :, TILE] = inputs.value.mean(-2, keepdim=True)
        return result

    return call
