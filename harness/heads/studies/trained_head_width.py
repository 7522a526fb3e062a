"""Decoders whose heads have one width, so that more heads make a wider layer with more parameters.

The other way to add heads, beside trained_heads, where they share the width of the model and each
becomes narrower. Eight heads are the same in both, and trained there. Each number of heads has the
learning rate that it has there.
"""

from collections.abc import Iterator

import torch

from ....impls.problem import Problem
from .. import training
from ..findings import TrainedHeadWidth
from ..synthetic_tasks import task as task_of
from ..training import D_MODEL, Learning, held_out, one_thread
from .trained_heads import GOALS, RATE_SHARES, SEEDS

QUESTION = "Which numbers of heads of one width learn a task, and in how many steps?"
PARTS = {"task": ("six_relations", "copy"), "heads": (1, 2, 4, 16)}
D_K = D_MODEL // 8


def run(
    problem: Problem, device: torch.device, seed: int, *, task: str, heads: int
) -> Iterator[TrainedHeadWidth]:
    """A finding per seed. `problem` is not used: the shapes are those of training.py."""
    of = task_of(task)
    with one_thread():
        for each in range(seed, seed + SEEDS):
            model = training.decoder(of, heads, device, each, d_k=D_K)
            rate = Learning(model, of, GOALS[task], each, RATE_SHARES[task][heads])
            done = training.train(model, of, rate, each)
            tested = held_out(of, each, device)
            yield TrainedHeadWidth(**training.learnt(task, of, model, done, each, tested, rate))
