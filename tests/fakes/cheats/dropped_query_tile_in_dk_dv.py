"""Leaves 16 neighbouring queries of 2048 out of the gradients of keys and values."""

from tests.fakes.cheats._shared import attention, true_gradients

INCORRECT = "times as far"
PROBLEM = {"seq_len": 2048, "passes": "forward+backward"}
TILE = slice(1008, 1024)


def without_tile(ctx, grad):
    d_q, _, _ = true_gradients(ctx, grad)
    others = grad.clone()
    others[:, :, TILE] = 0.0
    return d_q, *true_gradients(ctx, others)[1:]


def prepare(problem, inputs, weights):
    attend = attention(without_tile)
    return lambda: attend(*inputs)
