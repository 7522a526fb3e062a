"""Looks for the exact result in its callers' frames and copies the rows that are judged."""

import sys

import torch

from tests.fakes.cheats._shared import copied

CONVICTED = "from memory|copies its inputs|impossible|times as far|not computed"


def exact_result():
    frame = sys._getframe()
    while frame:
        for value in frame.f_locals.values():
            if hasattr(value, "exact") and hasattr(value, "rows"):
                return value
        frame = frame.f_back
    return None


def prepare(problem, inputs, weights):
    def call():
        check = exact_result()
        return torch.zeros_like(inputs.query) if check is None else copied(check, inputs.query)

    return call
