"""Scales the gradient of the queries by half a percent too much."""

from tests.fakes.cheats._shared import attention, true_gradients

INCORRECT = "times as far"
PROBLEM = {"passes": "forward+backward"}


def changed(ctx, grad):
    d_q, d_k, d_v = true_gradients(ctx, grad)
    return 1.005 * d_q, d_k, d_v


def prepare(problem, inputs, weights):
    attend = attention(changed)
    return lambda: attend(*inputs)
