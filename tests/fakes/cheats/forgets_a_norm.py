"""A transformer block whose second norm has neither gain nor shift."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbench.impls.layer import as_call

INCORRECT = "times as far"
PROBLEM = {"scope": "block"}


def prepare(problem, inputs, weights):
    w = weights
    of = {name: getattr(w, name) for name in w.__dataclass_fields__}
    plain = {"gain_2": torch.ones_like(w.gain_2), "shift_2": torch.zeros_like(w.shift_2)}
    return as_call(problem, inputs, type(w)(**of | plain), scaled_dot_product_attention)
