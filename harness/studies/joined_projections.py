"""One product for queries, keys and values against three, timed in the same blocks."""

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import linear

from ...impls.backend import TORCH_DTYPE
from ...impls.problem import Problem
from ..rows.findings import JoinedProjections
from ..stats.intervals import ratio_interval
from ._repeats import interval_fields
from .output_share import timed

QUESTION = "Does one product for queries, keys and values save time over three?"
PARTS = {"process": (1, 2, 3, 4, 5)}
PART_S = 4.0
BATCHES, LENGTHS, D_MODEL = (1, 8), (16, 128, 512), 256


def run(
    problem: Problem, device: torch.device, seed: int, *, process: int
) -> Iterator[JoinedProjections]:
    """`time_ratio`: three products over one."""
    generator, dtype = torch.Generator().manual_seed(seed), TORCH_DTYPE[problem.dtype]
    for batch in BATCHES:
        for seq_len in LENGTHS:
            x = torch.randn(batch, seq_len, D_MODEL, generator=generator).to(device, dtype)
            joined = torch.randn(3 * D_MODEL, D_MODEL, generator=generator).to(device, dtype)
            parts = [part.contiguous() for part in joined.split(D_MODEL)]
            with torch.no_grad():
                made = timed((partial(_each, x, parts), partial(linear, x, joined)), device)
            three, one = made.samples
            yield JoinedProjections(
                batch=batch,
                seq_len=seq_len,
                d_model=D_MODEL,
                dtype=problem.dtype,
                process=process,
                **interval_fields("time", ratio_interval(three, one), "ratio"),
                **made.conditions,
            )


def _each(x: Tensor, parts: Sequence[Tensor]) -> list[Tensor]:
    return [linear(x, part) for part in parts]
