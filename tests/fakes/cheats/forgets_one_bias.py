"""A layer that forgets the bias of its projection to queries."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbench.impls.layer import as_call

INCORRECT = "times as far|not zero"
PROBLEM = {"scope": "layer"}


def prepare(problem, inputs, weights):
    of = {name: getattr(weights, name) for name in weights.__dataclass_fields__}
    without = type(weights)(**of | {"b_q": torch.zeros_like(weights.b_q)})
    return as_call(problem, inputs, without, scaled_dot_product_attention)
