"""Writes its result over the queries and returns a view of them."""

from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "of its own|into its inputs"


def prepare(problem, inputs, weights):
    def call():
        result = scaled_dot_product_attention(*inputs)
        return inputs.query.data.copy_(result).view_as(result)

    return call
