"""Trains small decoders until they have learnt a task or reach a limit, and times each step.

AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101): the learning rate rises for a few steps and
then stays, so that at any step all models of a seed and a rate have seen the same batches, however
long they are trained. Which rate it is decides which number of heads is quick: each has its own.
One thread: the tensors are small, and sums have one order, so that equal seeds give equal losses.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import torch
from torch import Generator

from ...impls.modules.block import Decoder
from ...impls.problem import Problem
from ..measure.clock import clock_for
from .removal import Gated, GatedDecoder, Gates, loss_of
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


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def decoder(task: Task, heads: int, device: torch.device, seed: int) -> GatedDecoder:
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
    sizes = {"vocabulary": task.vocabulary, "depth": task.depth, "d_ff": D_FF}
    return GatedDecoder(Decoder(problem, backend=BACKEND, device=device, seed=seed, **sizes))


def train(
    model: GatedDecoder,
    task: Task,
    seed: int,
    learning_rate: float,
    gates: Callable[[int], Gates | None] = lambda _: None,
) -> dict[str, Any]:
    """Fields of a finding: sizes, and what was seen. Equal seeds see equal batches.

    `model` is changed. `gates`: for a step, the first of which is 1. `learnt_steps`: those of the
    first of two looks in a row that reach the goal; None if the limit came first. Looks are at new
    sequences. `step_ms`: without the time of drawing a batch.
    """
    parameters = [*model.model.parameters()]
    device = parameters[0].device
    clock, looked_at = clock_for(device), held_out(task, seed, device).part(0, LOOKED_AT)
    optimizer = torch.optim.AdamW(parameters, weight_decay=WEIGHT_DECAY, fused=True)
    batches, looks, step_ms = Generator().manual_seed(DRAWS + seed), {}, []
    learnt = None
    for step in range(1, task.limit_steps + 1):
        batch = task.draw(batches, BATCH).to(device)
        optimizer.param_groups[0]["lr"] = learning_rate * min(1, step / WARM_UP)
        clock.finish()
        begun = perf_counter()
        optimizer.zero_grad()
        loss_of(model.logits(batch.tokens, gates(step)), batch.targets).backward()
        optimizer.step()
        clock.finish()
        step_ms.append((perf_counter() - begun) * 1e3)
        if step % EVERY == 0:
            looks[step] = quality(model, looked_at)
            before = looks.get(step - EVERY, (0.0, 0.0))
            if min(before[1], looks[step][1]) >= task.right_ratio:
                learnt = step - EVERY
                break
    return {
        "d_model": D_MODEL,
        "depth": task.depth,
        "tokens": TOKENS,
        "batch": BATCH,
        "parameter_count": sum(one.numel() for one in parameters),
        "learnt_steps": learnt,
        "looked_steps": [*looks],
        "looked_loss_nats": [nats for nats, _ in looks.values()],
        "looked_accuracy_ratio": [right for _, right in looks.values()],
        "step_ms": step_ms,
    }


def held_out(task: Task, seed: int, device: torch.device) -> Batch:
    """The same sequences for every model of a seed; none of them was trained on, but by chance."""
    draw = task.held_out or task.draw
    return draw(Generator().manual_seed(2 * DRAWS + seed), HELD_OUT).to(device)


def quality(model: Gated, batch: Batch, gates: Gates | None = None) -> tuple[float, float]:
    """Loss in nats per scored token, and the share of them that is right."""
    with torch.no_grad():
        logits, targets = model.logits(batch.tokens, gates), batch.targets
        right = (logits.argmax(-1) == targets)[targets != UNSCORED].double().mean()
        return float(loss_of(logits, targets)), float(right)
