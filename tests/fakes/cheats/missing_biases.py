"""A layer that forgets the biases of its four projections."""

from torch.nn.functional import linear, scaled_dot_product_attention

INCORRECT = "times as far|not zero"
PROBLEM = {"scope": "layer"}


def prepare(problem, inputs, weights):
    p, w = problem, weights

    def heads(x, matrix):
        return linear(x, matrix).unflatten(-1, (p.heads, -1)).transpose(1, 2)

    def call():
        q, k, v = map(heads, inputs, (w.w_q, w.w_k, w.w_v))
        o = scaled_dot_product_attention(q, k, v)
        return linear(o.transpose(1, 2).flatten(2), w.w_o)

    return call
