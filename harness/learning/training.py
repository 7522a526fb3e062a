"""Trains small decoders that differ in their number of heads only, and times each step.

AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) with a linear warm-up and a cosine down to 0.
One thread: the tensors are small, and sums have one order, so that equal seeds give equal losses.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import cos, pi
from time import perf_counter

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
DRAWS = 7_919  # between the seeds of models, batches and held-out sequences, a prime


@dataclass(slots=True, kw_only=True)
class Trained:
    """A decoder after training, and every step of it. `peak_bytes`: of one step, see `step_bytes`.

    Losses in nats per scored token, before the step.
    """

    model: Decoder
    losses: list[float] = field(default_factory=list)
    step_ms: list[float] = field(default_factory=list)
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


def train(model: Decoder, task: Task, steps: int, seed: int) -> Trained:
    """`model` is changed. Equal seeds see equal batches, whatever the model."""
    device = next(model.parameters()).device
    generator = Generator().manual_seed(DRAWS + seed)
    optimizer = optimizer_of(model)
    clock, trained = clock_for(device), Trained(model=model)
    trained.peak_bytes = step_bytes(model, _moved(task.draw(generator, BATCH), device))
    for step in range(steps):
        batch = _moved(task.draw(generator, BATCH), device)
        optimizer.param_groups[0]["lr"] = RATE * _share(step, steps)
        clock.finish()
        begun = perf_counter()
        loss = training_step(model, batch, optimizer)
        clock.finish()
        trained.step_ms.append((perf_counter() - begun) * 1e3)
        trained.losses.append(float(loss))
    return trained


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=WEIGHT_DECAY, fused=True)


def training_step(model: Decoder, batch: Batch, optimizer: torch.optim.Optimizer) -> Tensor:
    """Forward, loss, backward and the optimizer's step; the loss before it."""
    loss = loss_of(model(batch.tokens)[0], batch.targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def step_bytes(model: Decoder, batch: Batch) -> int | None:
    """The most bytes alive in forward, loss and backward, above parameters and batch.

    Gradients count; what the optimizer keeps, twice the parameters, does not depend on the heads.
    """

    def step(_: object) -> None:
        loss_of(model(batch.tokens)[0], batch.targets).backward()

    found = peak(lambda: None, step, batch.tokens.device).peak_bytes
    model.zero_grad()
    return found


def held_out(task: Task, seed: int, device: torch.device) -> Batch:
    """The same sequences for every model of a seed; none of them was trained on, but by chance."""
    draw = task.held_out or task.draw
    return _moved(draw(Generator().manual_seed(2 * DRAWS + seed), HELD_OUT), device)


def seen(task: Task, seed: int, device: torch.device) -> Batch:
    """Sequences like those trained on; of a text that is seen repeatedly, some of those."""
    return _moved(task.draw(Generator().manual_seed(3 * DRAWS + seed), HELD_OUT), device)


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
        scored = batch.targets != UNSCORED
        right = (logits.argmax(-1) == batch.targets)[scored]
        return float(loss_of(logits, batch.targets)), float(right.double().mean())


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    return cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=UNSCORED)


def _share(step: int, steps: int) -> float:
    """Of the learning rate at a step."""
    warm = max(1, round(WARM_UP_SHARE * steps))
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + cos(pi * (step - warm) / max(1, steps - warm)))


def _moved(batch: Batch, device: torch.device) -> Batch:
    return Batch(batch.tokens.to(device), batch.targets.to(device))
