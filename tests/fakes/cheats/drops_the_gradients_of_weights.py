"""A layer that says it has no parameters, so that gradients of weights are not computed."""

from torch.nn.functional import scaled_dot_product_attention

from attnbench.impls.layer import as_call

CONVICTED = "gradients"
PROBLEM = {"scope": "layer", "passes": "forward+backward"}


def prepare(problem, inputs, weights):
    of = {name: getattr(weights, name).detach() for name in weights.__dataclass_fields__}
    layer = as_call(problem, inputs, type(weights)(**of), scaled_dot_product_attention)

    def call():
        return layer()

    call.parameters = ()
    return call
