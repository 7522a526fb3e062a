"""Returns the gradients of the call before while it computes those of the next."""

from tests.fakes.cheats._shared import attention, true_gradients

CONVICTED = "of its own|from memory|impossible|times as far"
PROBLEM = {"passes": "backward"}


def late(ctx, grad):
    before, ctx.kept = ctx.kept, true_gradients(ctx, grad)
    return before or ctx.kept


def prepare(problem, inputs, weights):
    attend = attention(late)
    return lambda: attend(*inputs)
