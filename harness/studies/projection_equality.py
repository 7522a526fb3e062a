"""Whether one projection for all heads equals a projection per head, but for summation order."""

from collections.abc import Iterator

import torch
from torch.nn.functional import linear

from ...impls.backend import TORCH_DTYPE
from ...impls.problem import Problem
from ..rows.findings import Finding
from ._backends import UNIT_ROUNDOFF

QUESTION = "Does one projection for all heads give what one projection per head gives?"
HEADS, D_MODEL, TOKENS = (2, 8, 16), 256, 64


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    """`worst_error_ratio`: the largest difference over sum |x| |w|.

    The rounding error of a sum is proportional to it (Higham, 3.1).
    """
    generator = torch.Generator().manual_seed(seed)
    for dtype, roundoff in UNIT_ROUNDOFF.items():
        x = torch.randn(TOKENS, D_MODEL, generator=generator).to(device, TORCH_DTYPE[dtype])
        weight = torch.randn(D_MODEL, D_MODEL, generator=generator).to(device, TORCH_DTYPE[dtype])
        whole = linear(x, weight).double()
        size = x.double().abs() @ weight.double().abs().T
        for heads in HEADS:
            parts = [linear(x, part) for part in weight.split(D_MODEL // heads)]
            worst = float(((whole - torch.cat(parts, -1).double()).abs() / size).max())
            # Two sums in fp32 in any order, and one rounding of each result.
            tolerance = 2 * D_MODEL * 2.0**-24 + 2 * roundoff
            yield Finding(
                dtype=dtype,
                heads=heads,
                holds=worst <= tolerance,
                worst_error_ratio=worst,
                tolerance_ratio=tolerance,
            )
