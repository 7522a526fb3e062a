"""In a backward pass alone: right for output gradients that were checked, 1 % off for others."""

from tests.fakes.cheats._shared import attention, true_gradients

CONVICTED = "times as far"
PROBLEM = {"passes": "backward", "seq_len": 512}
CHECKED = 2  # gradients that are checked, but for their signs
known = []


def right_if_known(ctx, grad):
    found = true_gradients(ctx, grad)
    size = float(grad[0, 0].abs().sum())
    if len(known) < CHECKED:
        known.append(size)
    right = any(abs(size - one) < 1e-3 for one in known)
    return found if right else tuple(1.01 * one for one in found)


def prepare(problem, inputs, weights):
    attend = attention(right_if_known)
    return lambda: attend(*inputs)
