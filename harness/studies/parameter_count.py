"""Parameters of a layer by number of heads, sharing d_model or of a fixed width."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from ...impls.layer import make_weights
from ...impls.problem import Problem
from ..rows.findings import Finding

QUESTION = "Do more heads mean more parameters?"
HEADS = (1, 2, 4, 8, 16)
D_MODEL, FIXED_WIDTH = 512, 64


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    for rule, width in (("d_model / heads", 0), (f"fixed at {FIXED_WIDTH}", FIXED_WIDTH)):
        for heads in HEADS:
            core = Problem(batch=1, seq_len=1, d_model=D_MODEL, heads=heads, d_k=width, d_v=width)
            layer = replace(core, scope="layer")
            weights = make_weights(layer, torch.device("meta"), seed)
            count = sum(tensor.numel() for tensor in weights.tensors())
            yield Finding(d_k_rule=rule, heads=heads, d_model=D_MODEL, parameter_count=count)
