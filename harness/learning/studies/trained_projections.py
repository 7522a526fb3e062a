"""Linformer's projections in a small model that is trained with them, against exact attention.

A causal decoder cannot have them: a projected key is a mixture of all keys, later ones too. So the
model here sees the whole sequence, and can be asked only what its tokens do not tell: `copy` and
`text` ask for the next token, which it would read. In `recall` the pairs stand at the same places
of every sequence, where projections can learn to look; `two_relations` asks each token for others
a few places before it, which differ from token to token.
"""

from collections.abc import Iterator

import torch

from ....impls.problem import Problem
from .. import training
from ..findings import TrainedProjections
from ..projected_attention import KINDS, project
from ..synthetic_tasks import task as task_of
from ..training import held_out, one_thread

QUESTION = "What does a model learn with Linformer's projections in place of exact attention?"
PARTS = {"task": ("recall", "two_relations"), "seed_number": (0, 1, 2, 3, 4)}
PART_S = 9.0
ATTENTIONS = ("exact", *KINDS)
TOKENS, RANK, HEADS = 48, 12, 4
STEPS = {"recall": 300, "two_relations": 300}


def run(
    problem: Problem, device: torch.device, seed: int, *, task: str, seed_number: int
) -> Iterator[TrainedProjections]:
    """A finding per attention, one after the other, so that their times can be compared.

    `problem` is not used: the shapes are those of training.py.
    """
    with one_thread():
        for attention in ATTENTIONS:
            yield trained(task, attention, device, seed + seed_number)


def trained(name: str, attention: str, device: torch.device, seed: int) -> TrainedProjections:
    """One training: its curve, and what the model answers on new sequences."""
    of = task_of(name, TOKENS)
    model = training.decoder(of, HEADS, device, seed, tokens=TOKENS, causal=False)
    is_exact = attention == "exact"
    if not is_exact:
        project(model, attention, RANK, seed)
    done = training.train(model, of, STEPS[name], seed)
    return TrainedProjections(
        **training.learnt(name, of, model, done, seed, held_out(of, seed, device)),
        attention=attention,
        rank=None if is_exact else RANK,
    )
