"""Keeps the gradients of six of eight heads by the contents of the output's gradient."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from tests.fakes.cheats._shared import attention, true_gradients

CONTAINED = "no two timed calls have the same values, so it computes in each"
PROBLEM = {"seq_len": 2048, "heads": 8, "passes": "backward"}


def by_content(ctx, grad):
    weighted = grad.sum(2) * torch.arange(1, grad.shape[-1] + 1, device=grad.device)
    key = float(weighted.sum())
    if key not in ctx.kept:
        ctx.kept[key] = true_gradients(ctx, grad)
    return ctx.kept[key]


def prepare(problem, inputs, weights):
    some, attend = problem.heads * 3 // 4, attention(by_content)

    def call():
        parts = attend(*(x[:, :some] for x in inputs))
        rest = scaled_dot_product_attention(*(x[:, some:] for x in inputs))
        return torch.cat((parts, rest), 1)

    return call
