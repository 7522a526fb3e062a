"""From its 40th call on it returns a tensor subclass that computes when it is first read."""

from itertools import count

from torch.nn.functional import scaled_dot_product_attention

from tests.fakes.cheats._shared import LazyTensor

CONVICTED = "LazyTensor|torch.Tensor|impossible"


def prepare(problem, inputs, weights):
    calls = count(1)

    def call():
        if next(calls) < 40:
            return scaled_dot_product_attention(*inputs)
        scaled_dot_product_attention(*(x[:, :, :64] for x in inputs))  # takes a plausible time
        return LazyTensor(inputs)

    return call
