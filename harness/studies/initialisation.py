"""What the size of the first weights does to a layer: Xavier, N(0, 1), and too small ones.

Xavier-uniform: Glorot and Bengio 2010. Inputs and the gradient of the output have variance 1, so a
layer keeps both well scaled if the variances of its output and of the input's gradient are near 1.
"""

from collections.abc import Callable, Iterator
from math import sqrt

import torch
from torch import Generator, Tensor

from ...impls.problem import Problem
from ..rows.findings import Initialisation
from ._repeats import mean_fields

QUESTION = "Which first weights keep activations and gradients of a layer of attention well scaled?"
WIDTHS, HEADS = (64, 256, 512), (1, 8)
TOKENS, BATCH, REPEATS = 16, 4, 6
SMALL_SD = 0.01


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Initialisation]:
    """Variances as mean over repeats with intervals on the log scale; biases are zero."""
    generator = Generator().manual_seed(seed)
    for rule, draw in RULES.items():
        for d_model in WIDTHS:
            for heads in HEADS:
                found = [variances(d_model, heads, draw, generator) for _ in range(REPEATS)]
                outputs, gradients = zip(*found, strict=True)
                yield Initialisation(
                    rule=rule,
                    d_model=d_model,
                    heads=heads,
                    **mean_fields("output_variance", outputs, of_logs=True),
                    **mean_fields("gradient_variance", gradients, of_logs=True),
                )


def variances(
    d_model: int, heads: int, draw: Callable[[int, Generator], Tensor], generator: Generator
) -> tuple[float, float]:
    """Of a layer's output, and of the gradient of its input."""
    x = torch.randn(BATCH, TOKENS, d_model, generator=generator).requires_grad_()
    w_q, w_k, w_v, w_o = (draw(d_model, generator) for _ in range(4))
    q, k, v = ((x @ w).view(BATCH, TOKENS, heads, -1).transpose(1, 2) for w in (w_q, w_k, w_v))
    p = torch.softmax(q @ k.mT / sqrt(d_model // heads), -1)
    output = (p @ v).transpose(1, 2).flatten(2) @ w_o
    (grad,) = torch.autograd.grad(output, x, torch.randn(output.shape, generator=generator))
    return float(output.detach().var()), float(grad.var())


def _normal(sd: float) -> Callable[[int, Generator], Tensor]:
    return lambda width, generator: sd * torch.randn(width, width, generator=generator)


def _xavier(width: int, generator: Generator) -> Tensor:
    return torch.nn.init.xavier_uniform_(torch.empty(width, width), generator=generator)


RULES = {
    "xavier": _xavier,
    "normal_1": _normal(1.0),
    "normal_0.01": _normal(SMALL_SD),
}
