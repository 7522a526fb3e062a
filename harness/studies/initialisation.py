"""What the size of the first weights does to a layer: Xavier, N(0, 1), and too small ones.

Xavier-uniform: Glorot and Bengio 2010. Inputs and the gradient of the output have variance 1, so a
layer keeps both well scaled if the variances of its output and of the input's gradient are near 1.
The output is a mean over about N / e of N tokens (weights whose scores have variance 1 sum up to
e / N squared), so its variance falls with N.
"""

from collections.abc import Callable, Iterator
from itertools import product
from math import sqrt

import torch
from torch import Generator, Tensor

from ...impls.problem import Problem
from ..rows.findings import Initialisation
from ._repeats import mean_fields

QUESTION = "Which first weights keep activations and gradients of a layer of attention well scaled?"
WIDTHS, HEADS = (64, 256), (1, 8)
LENGTHS, TOKENS, REPEATS = (16, 64, 256), 256, 5  # TOKENS: of a batch
SMALL_SD = 0.01


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Initialisation]:
    """Variances as mean over repeats with intervals on the log scale; biases are zero."""
    generator = Generator().manual_seed(seed)
    for rule, draw in RULES.items():
        for seq_len, d_model, heads in product(LENGTHS, WIDTHS, HEADS):
            found = [variances((seq_len, d_model, heads), draw, generator) for _ in range(REPEATS)]
            outputs, gradients = zip(*found, strict=True)
            yield Initialisation(
                rule=rule,
                seq_len=seq_len,
                d_model=d_model,
                heads=heads,
                **mean_fields("output_variance", outputs, of_logs=True),
                **mean_fields("gradient_variance", gradients, of_logs=True),
            )


def variances(
    shape: tuple[int, int, int], draw: Callable[[int, Generator], Tensor], generator: Generator
) -> tuple[float, float]:
    """Of a layer's output, and of the gradient of its input. `shape`: N, d_model and heads."""
    n, d_model, heads = shape
    x = torch.randn(TOKENS // n, n, d_model, generator=generator).requires_grad_()
    w_q, w_k, w_v, w_o = (draw(d_model, generator) for _ in range(4))
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    p = torch.softmax(q @ k.mT / sqrt(d_model // heads), -1)
    output = (p @ v).transpose(1, 2).flatten(2) @ w_o
    (grad,) = torch.autograd.grad(output, x, torch.randn(output.shape, generator=generator))
    return float(output.detach().var()), float(grad.var())


def _normal(sd: float) -> Callable[[int, Generator], Tensor]:
    return lambda width, generator: sd * torch.randn(width, width, generator=generator)


def xavier(width: int, generator: Generator) -> Tensor:
    return torch.nn.init.xavier_uniform_(torch.empty(width, width), generator=generator)


RULES = {
    "xavier": xavier,
    "normal_1": _normal(1.0),
    "normal_0.01": _normal(SMALL_SD),
}
