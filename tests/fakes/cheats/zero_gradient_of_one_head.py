"""Leaves the gradient of the keys of one head of eight at zero."""

from tests.fakes.cheats._shared import attention, true_gradients

INCORRECT = "times as far"
PROBLEM = {"heads": 8, "passes": "backward"}


def changed(ctx, grad):
    d_q, d_k, d_v = true_gradients(ctx, grad)
    d_k[:, 5] = 0.0
    return d_q, d_k, d_v


def prepare(problem, inputs, weights):
    attend = attention(changed)
    return lambda: attend(*inputs)
