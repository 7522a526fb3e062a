"""Returns its result as float64 although the case is fp32."""

from torch.nn.functional import scaled_dot_product_attention

CONVICTED = "float64|dtype"


def prepare(problem, inputs, weights):
    return lambda: scaled_dot_product_attention(*inputs).double()
