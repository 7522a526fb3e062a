"""Trains small decoders that differ in their number of heads only, and times each step.

AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) with a linear warm-up and a cosine down to 0.
One thread: the tensors are small, and sums have one order, so that equal seeds give equal losses.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import cos, pi
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from ...impls.block import Decoder
from ...impls.problem import Problem
from ..measure.clock import clock_for
from ..measure.peak_memory import peak
from .synthetic_tasks import TOKENS, UNSCORED, Batch, Task

D_MODEL, D_FF = 64, 128
BACKEND = "fused"
BATCH = 16
RATE, WARM_UP_SHARE, WEIGHT_DECAY = 5e-3, 0.1, 0.01
HELD_OUT = 256  # sequences
B = TypeVar("B")
DRAWS = 7_919  # between the seeds of models, batches and held-out sequences, a prime


class Fit(NamedTuple):
    """Of every step: the loss in nats per scored token before it, and its time.

    `peak_bytes`: of one step, see `step_bytes`.
    """

    losses: list[float]
    step_ms: list[float]
    peak_bytes: int | None = None


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def decoder(
    task: Task,
    heads: int,
    device: torch.device,
    seed: int,
    *,
    tokens: int = TOKENS,
    causal: bool = True,
) -> Decoder:
    """Its parameters are as many for every number of heads that divides D_MODEL."""
    problem = Problem(
        batch=BATCH,
        seq_len=tokens,
        d_model=D_MODEL,
        heads=heads,
        causal=causal,
        scope="layer",
        passes="forward+backward",
    )
    return Decoder(
        problem, task.vocabulary, task.depth, BACKEND, device=device, seed=seed, d_ff=D_FF
    )


def fit(
    model: nn.Module,
    steps: int,
    draw: Callable[[], B],
    loss_of: Callable[[B], Tensor],
) -> Fit:
    """`model` is changed. `loss_of`: of a batch that was drawn; drawing is no part of a step."""
    weights = [*model.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=RATE, weight_decay=WEIGHT_DECAY, fused=True)
    clock, done = clock_for(weights[0].device), Fit([], [])
    for step in range(steps):
        batch = draw()
        optimizer.param_groups[0]["lr"] = RATE * _share(step, steps)
        clock.finish()
        begun = perf_counter()
        loss = loss_of(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.finish()
        done.step_ms.append((perf_counter() - begun) * 1e3)
        done.losses.append(float(loss.detach()))
    return done


def train(model: Decoder, task: Task, steps: int, seed: int) -> Fit:
    """`model` is changed. Equal seeds see equal batches, whatever the model."""
    device, generator = next(model.parameters()).device, Generator().manual_seed(DRAWS + seed)

    def draw() -> Batch:
        return task.draw(generator, BATCH).to(device)

    peak_bytes = step_bytes(model, draw())
    return fit(model, steps, draw, partial(_loss, model))._replace(peak_bytes=peak_bytes)


def learnt(
    name: str, task: Task, model: Decoder, done: Fit, seed: int, tested: Batch
) -> dict[str, Any]:
    """What every finding of a training on a task has. `tested`: on new sequences."""
    loss, accuracy = quality(model, tested)
    return {
        "task": name,
        "heads": model.problem.heads,
        "train_seed": seed,
        "d_model": D_MODEL,
        "depth": task.depth,
        "tokens": tested.tokens.shape[1],
        "batch": BATCH,
        "vocabulary": task.vocabulary,
        "parameter_count": sum(one.numel() for one in model.parameters() if one.requires_grad),
        "steps": len(done.losses),
        "loss_nats": loss,
        "accuracy_ratio": accuracy,
        "step_loss_nats": done.losses,
        "step_ms": done.step_ms,
        "step_peak_bytes": done.peak_bytes,
    }


def step_bytes(model: Decoder, batch: Batch) -> int | None:
    """The most bytes alive in forward, loss and backward, above parameters and batch.

    Gradients count; what the optimizer keeps, twice the parameters, does not depend on the heads.
    """

    found = peak(lambda: None, lambda _: _loss(model, batch).backward(), batch.tokens.device)
    model.zero_grad()
    return found.peak_bytes


def held_out(task: Task, seed: int, device: torch.device) -> Batch:
    """The same sequences for every model of a seed; none of them was trained on, but by chance."""
    draw = task.held_out or task.draw
    return draw(Generator().manual_seed(2 * DRAWS + seed), HELD_OUT).to(device)


def seen(task: Task, seed: int, device: torch.device) -> Batch:
    """Sequences like those trained on; of a text that is seen repeatedly, some of those."""
    return task.draw(Generator().manual_seed(3 * DRAWS + seed), HELD_OUT).to(device)


def quality(model: Decoder, batch: Batch, noise: float = 0.0) -> tuple[float, float]:
    """Loss in nats per scored token, and the share of them that is right.

    `noise`: normal, added to the embedded tokens, of so many times their standard deviation.
    """
    with torch.no_grad():
        x = model.embed(batch.tokens)
        if noise:
            drawn = torch.randn(x.shape, generator=Generator().manual_seed(DRAWS)).to(x)
            x = x + noise * x.std() * drawn
        logits = model.from_embedded(x)[0]
        return float(loss_of(logits, batch.targets)), share_right(logits, batch.targets)


def share_right(logits: Tensor, targets: Tensor) -> float:
    """Of the scored tokens."""
    return float((logits.argmax(-1) == targets)[targets != UNSCORED].double().mean())


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    return cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=UNSCORED)


def _loss(model: Decoder, batch: Batch) -> Tensor:
    return loss_of(model(batch.tokens)[0], batch.targets)


def _share(step: int, steps: int) -> float:
    """Of the learning rate at a step."""
    warm = max(1, round(WARM_UP_SHARE * steps))
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + cos(pi * (step - warm) / max(1, steps - warm)))
