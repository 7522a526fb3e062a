"""Properties of attention, tried on random inputs with every exact backend."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

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


class Drawn(NamedTuple):
    """q, k and v, each [1, head, token, width], and what computes the weights and the output."""

    q: Tensor
    k: Tensor
    v: Tensor
    weights: Callable[[Tensor, Tensor], Tensor]
    attend: Callable[[Tensor, Tensor, Tensor], Tensor]


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    of = Problem(batch=1, seq_len=TOKENS, d_model=HEADS * TOKENS, heads=HEADS, dtype=problem.dtype)
    tolerance = ROUNDINGS * UNIT_ROUNDOFF[of.dtype]
    for backend in exact_backends(of, device):
        generator = Generator().manual_seed(seed)
        for name, error in PROPERTIES.items():
            worst = max(error(drawn(backend, of, device, generator)) for _ in range(CASES))
            yield Finding(
                property=name,
                backend=backend.name,
                dtype=of.dtype,
                holds=worst <= tolerance,
                worst_error_ratio=worst,
                case_count=CASES,
                tolerance_ratio=tolerance,
            )


def drawn(backend: Backend, of: Problem, device: torch.device, generator: Generator) -> Drawn:
    """Of sizes over two orders of magnitude, so that the softmax is nearly even or has a choice."""
    size = 10 ** (2 * float(torch.rand((), generator=generator)) - 2)
    shape = (1, of.heads, of.seq_len, of.d_k)
    q, k, v = (
        (size * torch.randn(shape, generator=generator)).to(device, TORCH_DTYPE[of.dtype])
        for _ in range(3)
    )
    return Drawn(q, k, v, partial(weights, backend, of), partial(attend, backend, of))


def rows_sum_to_one(of: Drawn) -> float:
    return float((of.weights(of.q, of.k).double().sum(-1) - 1).abs().max())


def outputs_between_values(of: Drawn) -> float:
    """How far outputs are outside the box of the values, over the box's size."""
    out = of.attend(of.q, of.k, of.v).double()
    low, high = of.v.double().aminmax(dim=-2, keepdim=True)
    return float((torch.relu(low - out) + torch.relu(out - high)).max() / (high - low).max())


def order_permutes_outputs(of: Drawn) -> float:
    """Without positions: permuting the tokens only permutes the outputs."""
    order = torch.arange(of.q.shape[-2], device=of.q.device).roll(5).flip(0)
    out = of.attend(of.q, of.k, of.v).double()
    permuted = of.attend(*(one[:, :, order].contiguous() for one in (of.q, of.k, of.v))).double()
    return float((out[:, :, order] - permuted).abs().max() / of.v.double().abs().max())


def scaling_inputs_keeps_weights(of: Drawn) -> float:
    scaled = of.weights(SCALE * of.q, SCALE * of.k)
    return float((of.weights(of.q, of.k).double() - scaled.double()).abs().max())


PROPERTIES: dict[str, Callable[[Drawn], float]] = {
    "rows_sum_to_one": rows_sum_to_one,
    "outputs_between_values": outputs_between_values,
    "order_permutes_outputs": order_permutes_outputs,
    "scaling_inputs_keeps_weights": scaling_inputs_keeps_weights,
}
