"""What Linformer's projections keep of attention's output: random, mean pooling and trained ones.

Wang et al. 2020 project keys and values along N by matrices that are learnt with the model. Here
only those two matrices are trained, to bring the output close to the exact one on inputs of one
kind, and judged on other inputs of that kind.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from ...impls.linformer import pooled
from ...impls.problem import Problem
from ..rows.findings import Finding
from ..stats.intervals import mean_interval
from ._repeats import interval_fields

QUESTION = "How much of attention's output do Linformer's projections keep, trained and untrained?"
TOKENS, WIDTH, RANK = 64, 16, 8
SEEDS, STEPS, BATCH, HELD_OUT = 5, 100, 16, 64
LEARNING_RATE = 3e-2
NEIGHBOURS = 0.9  # correlation of neighbouring tokens, of smooth inputs
KINDS = ("independent tokens", "neighbours alike")
Projected = tuple[Tensor, Tensor]


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[Finding]:
    """Cosine and relative L2 error of the output on held-out inputs: means over 5 seeds, each with
    its 95 % interval.
    """
    for kind in KINDS:
        results = [_judged(kind, seed * SEEDS + one) for one in range(SEEDS)]
        for name in results[0]:
            cosine = mean_interval([one[name][0] for one in results], "seed")
            error = mean_interval([one[name][1] for one in results], "seed")
            yield Finding(
                inputs=kind,
                projections=name,
                seq_len=TOKENS,
                rank=RANK,
                d_k=WIDTH,
                seeds=SEEDS,
                training_steps=STEPS if name == "trained" else 0,
                **interval_fields("output_cosine", cosine),
                **interval_fields("error_l2_ratio", error),
            )


def _judged(kind: str, seed: int) -> dict[str, tuple[float, float]]:
    """By projections, cosine and error."""
    generator = torch.Generator().manual_seed(seed)
    e, f = (torch.randn(RANK, TOKENS, generator=generator) * RANK**-0.5 for _ in range(2))
    trained = _trained(kind, (e, f), generator)
    q, k, v = _inputs(kind, HELD_OUT, generator)
    exact, stride = _attend(q, k, v), TOKENS // RANK
    outputs = {
        "random": _attend(q, e @ k, f @ v),
        "mean pooling": _attend(q, pooled(k, stride), pooled(v, stride)),
        "trained": _attend(q, trained[0] @ k, trained[1] @ v),
    }
    return {name: _compared(output, exact) for name, output in outputs.items()}


def _trained(kind: str, start: Projected, generator: torch.Generator) -> Projected:
    """From the random ones, by Adam (Kingma and Ba 2015) on fresh inputs in every step."""
    e, f = (one.clone().requires_grad_() for one in start)
    optimizer = torch.optim.Adam((e, f), LEARNING_RATE)
    for _ in range(STEPS):
        q, k, v = _inputs(kind, BATCH, generator)
        exact = _attend(q, k, v)
        loss = (_attend(q, e @ k, f @ v) - exact).square().sum() / exact.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return e.detach(), f.detach()


def _inputs(kind: str, batch: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """q, k and v [batch, token, width] of variance 1."""
    drawn = torch.randn(3, batch, TOKENS, WIDTH, generator=generator)
    if kind == KINDS[0]:
        return tuple(drawn)
    # x_t = r x_(t-1) + sqrt(1 - r^2) e_t, from x_0 = e_0, as one product
    ages = torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)
    weights = torch.where(ages >= 0, NEIGHBOURS ** ages.float(), 0.0)
    weights[:, 1:] *= (1 - NEIGHBOURS**2) ** 0.5
    return tuple(weights @ drawn)


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT * WIDTH**-0.5, -1) @ v


def _compared(output: Tensor, exact: Tensor) -> tuple[float, float]:
    cosine = torch.nn.functional.cosine_similarity(output.flatten(), exact.flatten(), dim=0)
    return float(cosine), float((output - exact).norm() / exact.norm())
