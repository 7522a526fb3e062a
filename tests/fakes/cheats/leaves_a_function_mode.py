"""Leaves a function mode on from its fifth call, which others' calls of torch pass through."""

from itertools import count

from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

CONTAINED = "the mode is on in its own process, where its own calls pass through it too"


class Passes(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def prepare(problem, inputs, weights):
    calls = count(1)

    def call():
        result = scaled_dot_product_attention(*inputs)
        if next(calls) == 5:
            Passes().__enter__()
        return result

    return call
