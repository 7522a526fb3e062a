"""Properties of attention, tried on random inputs with every exact backend."""

from collections.abc import Iterator

import torch
from torch import Generator

from ...impls.backend import Inputs
from ...impls.discovery.loading import Backend
from ...impls.problem import Problem
from ..rows.findings import Finding
from ._shared import attend, exact_backends, held_fields, normal, rounding, weights

QUESTION = (
    "Do weights sum to 1, do outputs lie between the values, does order matter, does scale matter?"
)
CASES, TOKENS, HEADS = 30, 32, 2  # heads as wide as there are tokens, as `weights` wants
SCALE = 3.0


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    of = Problem(batch=1, seq_len=TOKENS, d_model=HEADS * TOKENS, heads=HEADS, dtype=problem.dtype)
    for backend in exact_backends(of, device):
        generator = Generator().manual_seed(seed)
        cases = [errors(backend, of, drawn(of, device, generator)) for _ in range(CASES)]
        for name in cases[0]:
            held = held_fields([one[name] for one in cases], rounding(of.dtype))
            yield Finding(property=name, backend=backend.name, dtype=of.dtype, **held)


def drawn(of: Problem, device: torch.device, generator: Generator) -> Inputs:
    """q, k and v of sizes over two orders of magnitude: the softmax may be nearly even or have a
    choice.
    """
    size = 10 ** (2 * float(torch.rand((), generator=generator)) - 2)
    q, k, v = (size * one for one in normal(of, device, generator))
    return Inputs(q, k, v)


def errors(backend: Backend, of: Problem, inputs: Inputs) -> dict[str, float]:
    """By property, how far it is from holding. Outputs are outside the box of the values by a share
    of its size; without positions, permuting the tokens only permutes the outputs.
    """
    q, k, v = inputs
    p = weights(backend, of, q, k).double()
    out = attend(backend, of, inputs).double()
    low, high = v.double().aminmax(dim=-2, keepdim=True)
    outside = torch.relu(low - out) + torch.relu(out - high)
    order = torch.arange(of.seq_len, device=q.device).roll(5).flip(0)
    q_other, k_other, v_other = (one[:, :, order].contiguous() for one in inputs)
    permuted = attend(backend, of, Inputs(q_other, k_other, v_other)).double()
    scaled = weights(backend, of, SCALE * q, SCALE * k).double()
    found = {
        "rows_sum_to_one": p.sum(-1) - 1,
        "outputs_between_values": outside / (high - low).max(),
        "order_permutes_outputs": (out[:, :, order] - permuted) / v.double().abs().max(),
        "scaling_inputs_keeps_weights": p - scaled,
    }
    return {name: float(difference.abs().max()) for name, difference in found.items()}
