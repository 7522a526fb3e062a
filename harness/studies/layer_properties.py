"""Properties of attention, tried on random inputs in float64 with the textbook formula."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ...impls.problem import Problem
from ..rows.findings import LayerProperty

QUESTION = (
    "Do weights sum to 1, do outputs lie between the values, does order matter, does scale matter?"
)
CASES = 50
TOLERANCE = 1e-12  # for float64 sums over some hundred terms
TOKENS, WIDTH = 24, 16
SCALE = 3.0


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[LayerProperty]:
    generator = torch.Generator().manual_seed(seed)
    for name, error in PROPERTIES.items():
        worst = max(error(generator) for _ in range(CASES))
        yield LayerProperty(
            property=name,
            holds=worst <= TOLERANCE,
            worst_error_ratio=worst,
            case_count=CASES,
            tolerance_ratio=TOLERANCE,
        )


def drawn(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v, each [token, width].

    Their size varies by four orders of magnitude, so soft and hard softmaxes both occur.
    """
    size = 10 ** (4 * torch.rand((), generator=generator, dtype=torch.float64) - 2)
    q, k, v = (
        torch.randn(TOKENS, WIDTH, generator=generator, dtype=torch.float64) * size
        for _ in range(3)
    )
    return q, k, v


def weights(q: Tensor, k: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / WIDTH**0.5, -1)  # [query, key]


def rows_sum_to_one(generator: torch.Generator) -> float:
    q, k, _ = drawn(generator)
    return float((weights(q, k).sum(-1) - 1).abs().max())


def outputs_between_values(generator: torch.Generator) -> float:
    """How far outputs are outside the box of the values, over the box's size."""
    q, k, v = drawn(generator)
    out, low, high = weights(q, k) @ v, v.amin(0), v.amax(0)
    return float((torch.relu(low - out) + torch.relu(out - high)).max() / (high - low).max())


def order_permutes_outputs(generator: torch.Generator) -> float:
    """Without positions: permuting the tokens only permutes the outputs."""
    q, k, v = drawn(generator)
    order = torch.randperm(TOKENS, generator=generator)
    out, permuted = weights(q, k) @ v, weights(q[order], k[order]) @ v[order]
    return float((out[order] - permuted).abs().max() / out.abs().max())


def scaling_inputs_keeps_weights(generator: torch.Generator) -> float:
    q, k, _ = drawn(generator)
    return float((weights(q, k) - weights(SCALE * q, SCALE * k)).abs().max())


PROPERTIES: dict[str, Callable[[torch.Generator], float]] = {
    "rows_sum_to_one": rows_sum_to_one,
    "outputs_between_values": outputs_between_values,
    "order_permutes_outputs": order_permutes_outputs,
    "scaling_inputs_keeps_weights": scaling_inputs_keeps_weights,
}
