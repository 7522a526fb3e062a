"""Looks for the exact result among all live objects and copies the rows that are judged."""

import gc

import torch

from tests.fakes.cheats._shared import copied

CONVICTED = "from memory|copies its inputs|times as far|not computed"


def exact_result():
    for one in gc.get_objects():
        if type(one).__name__ == "CorrectnessCheck":
            return one
    return None


def prepare(problem, inputs, weights):
    found = []

    def call():
        found.append(exact_result()) if not found else None
        like = inputs.query
        return torch.zeros_like(like) if found[0] is None else copied(found[0], like)

    return call
