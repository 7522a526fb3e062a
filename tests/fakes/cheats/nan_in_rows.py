"""Returns NaN in rows 192 to 255 of 4096."""

from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "NaN"
PROBLEM = {"seq_len": 4096}


def prepare(problem, inputs, weights):
    def call():
        result = scaled_dot_product_attention(*inputs)
        result[:, :, 192:256] = float("nan")
        return result

    return call
