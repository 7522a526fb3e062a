"""Computes in fp16 although the case is fp32, and returns fp32."""

from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "times as far"


def prepare(problem, inputs, weights):
    return lambda: scaled_dot_product_attention(*(x.half() for x in inputs)).float()
