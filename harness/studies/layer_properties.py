"""Properties of attention, tried on random inputs with every exact backend."""

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from ...impls.backend import TORCH_DTYPE
from ...impls.discovery.loading import Backend
from ...impls.problem import Problem
from ..rows.findings import Finding
from ._backends import UNIT_ROUNDOFF, attend, exact_backends, weights

QUESTION = (
    "Do weights sum to 1, do outputs lie between the values, does order matter, does scale matter?"
)
CASES, TOKENS, HEADS = 30, 32, 2  # heads as wide as there are tokens, as `weights` wants
ROUNDINGS = 8
"""Errors that count as rounding, in units of roundoff: scores of inputs of size 1 are about 1, and
a weight is off by as much as its score and its sum are.
"""
SCALE = 3.0


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    of = Problem(batch=1, seq_len=TOKENS, d_model=HEADS * TOKENS, heads=HEADS, dtype=problem.dtype)
    tolerance = ROUNDINGS * UNIT_ROUNDOFF[of.dtype]
    for backend in exact_backends(of, device):
        generator = Generator().manual_seed(seed)
        cases = [errors(backend, of, *drawn(of, device, generator)) for _ in range(CASES)]
        for name in cases[0]:
            worst = max(one[name] for one in cases)
            yield Finding(
                property=name,
                backend=backend.name,
                dtype=of.dtype,
                holds=worst <= tolerance,
                worst_error_ratio=worst,
                case_count=CASES,
                tolerance_ratio=tolerance,
            )


def drawn(of: Problem, device: torch.device, generator: Generator) -> list[Tensor]:
    """q, k and v [1, head, token, width], of sizes over two orders of magnitude: the softmax may be
    nearly even or have a choice.
    """
    size = 10 ** (2 * float(torch.rand((), generator=generator)) - 2)
    shape = (1, of.heads, of.seq_len, of.d_k)
    return [
        (size * torch.randn(shape, generator=generator)).to(device, TORCH_DTYPE[of.dtype])
        for _ in range(3)
    ]


def errors(backend: Backend, of: Problem, q: Tensor, k: Tensor, v: Tensor) -> dict[str, float]:
    """By property, how far it is from holding. Outputs are outside the box of the values by a share
    of its size; without positions, permuting the tokens only permutes the outputs.
    """
    p = weights(backend, of, q, k).double()
    out = attend(backend, of, q, k, v).double()
    low, high = v.double().aminmax(dim=-2, keepdim=True)
    outside = torch.relu(low - out) + torch.relu(out - high)
    order = torch.arange(of.seq_len, device=q.device).roll(5).flip(0)
    permuted = attend(backend, of, *(one[:, :, order].contiguous() for one in (q, k, v))).double()
    scaled = weights(backend, of, SCALE * q, SCALE * k).double()
    found = {
        "rows_sum_to_one": p.sum(-1) - 1,
        "outputs_between_values": outside / (high - low).max(),
        "order_permutes_outputs": (out[:, :, order] - permuted) / v.double().abs().max(),
        "scaling_inputs_keeps_weights": p - scaled,
    }
    return {name: float(difference.abs().max()) for name, difference in found.items()}
