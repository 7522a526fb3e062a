"""Rounds the gradient of the values to bf16."""

from tests.fakes.cheats._shared import attention, true_gradients

INCORRECT = "times as far"
PROBLEM = {"passes": "forward+backward"}


def changed(ctx, grad):
    d_q, d_k, d_v = true_gradients(ctx, grad)
    return d_q, d_k, d_v.bfloat16().float()


def prepare(problem, inputs, weights):
    attend = attention(changed)
    return lambda: attend(*inputs)
