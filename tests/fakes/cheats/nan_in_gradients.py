"""Returns NaN in one row of the gradient of the queries; its output is right."""

from tests.fakes.cheats._shared import attention, true_gradients

INCORRECT = "gradient has NaN"
PROBLEM = {"passes": "forward+backward"}


def changed(ctx, grad):
    d_q, d_k, d_v = true_gradients(ctx, grad)
    d_q[:, :, 100] = float("nan")
    return d_q, d_k, d_v


def prepare(problem, inputs, weights):
    attend = attention(changed)
    return lambda: attend(*inputs)
