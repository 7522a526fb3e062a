"""Scales the gradient of the queries by half a percent too much."""

import torch
from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "times as far"
PROBLEM = {"passes": "forward+backward"}
SHARES = True


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs):
        ctx.save_for_backward(*inputs)
        return scaled_dot_product_attention(*inputs)

    @staticmethod
    def backward(ctx, grad):
        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            output = scaled_dot_product_attention(*inputs)
        d_q, d_k, d_v = torch.autograd.grad(output, inputs, grad)
        return 1.005 * d_q, d_k, d_v


def prepare(problem, inputs, weights):
    return lambda: Attention.apply(*inputs)
