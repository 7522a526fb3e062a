"""Trains small decoders until they have learnt a task or reach a limit, and times each step.

AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101): the learning rate rises for a few steps and
then stays, so that at any step all models of a seed and a rate have seen the same batches, however
long they are trained. Which rate it is decides which number of heads is quick: each has its own.
One thread: the tensors are small, and sums have one order, so that equal seeds give equal losses.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import torch
from torch import Generator, Tensor

from ...impls.modules.block import Decoder
from ...impls.problem import Problem
from ..measure.clock import clock_for
from .removal import loss_of
from .synthetic_tasks import TOKENS, UNSCORED, Batch, Task

D_MODEL, D_FF = 64, 128
BACKEND = "sdpa"
BATCH = 16
WEIGHT_DECAY = 0.01
WARM_UP = 20  # steps in which the rate rises
EVERY = 20  # steps from one look to the next
LOOKED_AT = 128  # sequences of a look
HELD_OUT = 256  # sequences for what is asked of a trained model
DRAWS = 7_919  # between the seeds of models, batches and held-out sequences, a prime


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The share of right answers from which a task counts as learnt, above 1 to train for
    `limit_steps` whatever is answered. `limit_steps`: a multiple of EVERY.
    """

    right_ratio: float
    limit_steps: int


@dataclass(slots=True, kw_only=True)
class Training:
    """What was seen of one training.

    `learnt_steps`: those of the first of two looks in a row that reach the goal; None if the limit
    came first. Looks are at new sequences. `step_ms`: without the time of drawing a batch.
    """

    learnt_steps: int | None = None
    looked_steps: list[int] = field(default_factory=list)
    looked_accuracy_ratio: list[float] = field(default_factory=list)
    looked_loss_nats: list[float] = field(default_factory=list)
    step_ms: list[float] = field(default_factory=list)


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def decoder(task: Task, heads: int, device: torch.device, seed: int) -> Decoder:
    """Its parameters are as many for every number of heads that divides D_MODEL."""
    problem = Problem(
        batch=BATCH,
        seq_len=TOKENS,
        d_model=D_MODEL,
        heads=heads,
        causal=True,
        scope="layer",
        passes="forward+backward",
    )
    return Decoder(
        problem, task.vocabulary, task.depth, BACKEND, device=device, seed=seed, d_ff=D_FF
    )


def sizes(model: Decoder) -> dict[str, Any]:
    """What a finding says of the model."""
    return {
        "d_model": D_MODEL,
        "depth": len(model.own_blocks),
        "tokens": TOKENS,
        "batch": BATCH,
        "parameter_count": sum(one.numel() for one in model.parameters()),
    }


def train(
    model: Decoder,
    task: Task,
    seed: int,
    learning_rate: float,
    goal: Goal,
    loss: Callable[[Batch], Tensor] | None = None,
) -> Training:
    """`model` is changed. Equal seeds see equal batches, whatever the model.

    `loss`: of a batch in nats per scored token; that of the whole model, if nothing else is said.
    """
    device = next(model.parameters()).device
    loss, clock, done = loss or partial(_loss, model), clock_for(device), Training()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=WEIGHT_DECAY, fused=True)
    batches, looked_at = Generator().manual_seed(DRAWS + seed), held_out(task, seed, device)
    looked_at = looked_at.part(0, LOOKED_AT)
    for step in range(1, goal.limit_steps + 1):
        batch = task.draw(batches, BATCH).to(device)
        optimizer.param_groups[0]["lr"] = learning_rate * min(1, step / WARM_UP)
        clock.finish()
        begun = perf_counter()
        optimizer.zero_grad()
        loss(batch).backward()
        optimizer.step()
        clock.finish()
        done.step_ms.append((perf_counter() - begun) * 1e3)
        if step % EVERY == 0:
            nats, right = quality(model, looked_at)
            done.looked_steps.append(step)
            done.looked_loss_nats.append(nats)
            done.looked_accuracy_ratio.append(right)
            last_two = done.looked_accuracy_ratio[-2:]
            if len(last_two) == 2 and min(last_two) >= goal.right_ratio:
                done.learnt_steps = step - EVERY
                break
    return done


def held_out(task: Task, seed: int, device: torch.device) -> Batch:
    """The same sequences for every model of a seed; none of them was trained on, but by chance."""
    draw = task.held_out or task.draw
    return draw(Generator().manual_seed(2 * DRAWS + seed), HELD_OUT).to(device)


def quality(model: Decoder, batch: Batch) -> tuple[float, float]:
    """Loss in nats per scored token, and the share of them that is right."""
    with torch.no_grad():
        logits, targets = model(batch.tokens)[0], batch.targets
        right = (logits.argmax(-1) == targets)[targets != UNSCORED].double().mean()
        return float(loss_of(logits, targets)), float(right)


def _loss(model: Decoder, batch: Batch) -> Tensor:
    return loss_of(model(batch.tokens)[0], batch.targets)
