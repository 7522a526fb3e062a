"""A layer that keeps its weights in bf16, although the case is fp32."""

from torch.nn.functional import scaled_dot_product_attention

from attnbench.impls.layer import as_call

INCORRECT = "times as far"
PROBLEM = {"scope": "layer"}


def prepare(problem, inputs, weights):
    of = {name: getattr(weights, name) for name in weights.__dataclass_fields__}
    rounded = type(weights)(**{name: one.bfloat16().float() for name, one in of.items()})
    return as_call(problem, inputs, rounded, scaled_dot_product_attention)
