"""Attention weights of every head of a small layer, as `fused` computes them.

Inputs and weights are random, nothing is trained. Each row sums to 1.
"""

from collections.abc import Iterator

import torch

from ...impls import Inputs, load
from ...impls.layer import make_weights, split_heads
from ...impls.problem import Problem
from ...impls.shared.inputs import make_inputs
from ..rows.findings import Finding

QUESTION = "What do the heads of a layer look at?"
SHOWN = {
    "map": "weight_rows",
    "x": "key token",
    "y": "query token",
    "each": "head",
    "value": "weight",
}
TOKENS, WIDTH, MOST_HEADS = 12, 16, 8
BACKEND = "fused"


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    """One finding per head: `weight_rows`, [query][key], each row sums to 1; `attended_tokens`: of
    equal weight, that would have the same entropy.

    Inputs and weights are random, not trained.
    """
    heads = min(problem.heads, MOST_HEADS)
    small = Problem(
        batch=1,
        seq_len=TOKENS,
        d_model=WIDTH * heads,
        heads=heads,
        causal=problem.causal,
        scope="layer",
    )
    inputs, weights = make_inputs(small, device, seed), make_weights(small, device, seed)
    split = Inputs(*split_heads(small, inputs, weights))
    maps = load(BACKEND).attention_weights(small, split)[0]  # [head, query, key]
    for head, matrix in enumerate(maps.double().cpu(), start=1):
        entropy = -(matrix * matrix.clamp_min(1e-300).log()).sum(-1).mean()
        yield Finding(
            head=head,
            heads=heads,
            causal=small.causal,
            mean_entropy_nats=float(entropy),
            attended_tokens=float(entropy.exp()),
            weight_rows=[[float(weight) for weight in row] for row in matrix],
        )
