"""Leaves 16 neighbouring queries of 2048 out of the gradients of keys and values."""

import torch
from torch.nn.functional import scaled_dot_product_attention

INCORRECT = "times as far"
PROBLEM = {"seq_len": 2048, "passes": "forward+backward"}
SHARES = True
TILE = slice(1008, 1024)


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
        d_q, _, _ = torch.autograd.grad(output, inputs, grad, retain_graph=True)
        without_tile = grad.clone()
        without_tile[:, :, TILE] = 0.0
        _, d_k, d_v = torch.autograd.grad(output, inputs, without_tile)
        return d_q, d_k, d_v


def prepare(problem, inputs, weights):
    return lambda: Attention.apply(*inputs)
