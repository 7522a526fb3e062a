"""Trains small decoders until they have learnt a task or reach a limit, and times each step.

AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) with a warm-up and a rate that stays until the
task is learnt or the limit is reached and then falls to 0, as in Hu et al. 2024 (arXiv:2404.06395):
at any step before that, all models of a seed have seen the same batches, however long they are
trained. Which rate it is decides which number of heads is quick, so that each may have its own.
One thread: the tensors are small, and sums have one order, so that equal seeds give equal losses.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from ...impls.modules.block import Decoder
from ...impls.problem import Problem
from ..measure.clock import clock_for
from ..measure.peak_memory import peak
from .synthetic_tasks import TOKENS, UNSCORED, Batch, Task

D_MODEL, D_FF = 64, 128
BACKEND = "fused"
BATCH = 16
RATE, WEIGHT_DECAY = 5e-3, 0.01
STAYING_RATE_SHARE = 0.6  # of RATE, where it stays if nothing else is said
WARM_UP, SETTLING = 20, 60  # steps in which the rate rises, and in which it falls to 0
EVERY = 20  # steps from one look at the accuracy to the next
HELD_OUT = 256  # sequences
LOOKS = 128  # sequences of a look
B = TypeVar("B")
DRAWS = 7_919  # between the seeds of models, batches and held-out sequences, a prime


class Fit(NamedTuple):
    """Of every step: the loss in nats per scored token before it, and its time.

    `peak_bytes`: of one step, see `step_bytes`.
    """

    losses: list[float]
    step_ms: list[float]
    peak_bytes: int | None = None


class Goal(NamedTuple):
    """The share of right answers from which a task counts as learnt, None if it is to be trained
    for `limit_steps` whatever it answers; and the most steps before the rate falls.
    """

    right_ratio: float | None
    limit_steps: int


class Learning:
    """The rate of each step, by how much of the task is learnt: called with 0, 1, ...

    `stays_at`: the share of RATE from the warm-up until then.
    `right`: the share of right answers, at each number of steps that was looked at. `learnt_steps`:
    those of the first of two looks in a row that reach the goal; None if the limit came first.
    """

    def __init__(
        self,
        model: Decoder,
        task: Task,
        goal: Goal,
        seed: int,
        stays_at: float = STAYING_RATE_SHARE,
    ) -> None:
        self.model, self.goal, self.stays_at = model, goal, stays_at
        draw = task.held_out or task.draw
        of = draw(Generator().manual_seed(4 * DRAWS + seed), LOOKS)
        self.looked_at = of.to(next(model.parameters()).device)
        self.right: dict[int, float] = {}
        self.learnt_steps: int | None = None
        self.settles_from: int | None = None

    def __call__(self, step: int) -> float | None:
        """The share of RATE; None after the last step."""
        if self.settles_from is None and step and step % EVERY == 0:
            self._look(step)
        if self.settles_from is None and step >= self.goal.limit_steps:
            self.settles_from = step
        if self.settles_from is None:
            return self.stays_at * min(1.0, (step + 1) / WARM_UP)
        left = 1 - (step - self.settles_from) / SETTLING
        return self.stays_at * left if left > 0 else None

    def _look(self, step: int) -> None:
        before, now = self.right.get(step - EVERY, 0.0), quality(self.model, self.looked_at)[1]
        self.right[step] = now
        if self.goal.right_ratio is not None and min(before, now) >= self.goal.right_ratio:
            self.learnt_steps, self.settles_from = step - EVERY, step


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
    d_k: int | None = None,
) -> Decoder:
    """Its parameters are as many for every number of heads that divides D_MODEL, unless `d_k` is
    given: the width of each head, else D_MODEL / heads.
    """
    width = d_k or D_MODEL // heads
    problem = Problem(
        batch=BATCH,
        seq_len=tokens,
        d_model=D_MODEL,
        heads=heads,
        d_k=width,
        d_v=width,
        causal=True,
        scope="layer",
        passes="forward+backward",
    )
    return Decoder(
        problem, task.vocabulary, task.depth, BACKEND, device=device, seed=seed, d_ff=D_FF
    )


def fit(
    model: nn.Module,
    rate: Callable[[int], float | None],
    draw: Callable[[], B],
    loss_of: Callable[[B], Tensor],
) -> Fit:
    """`model` is changed. `rate`: the share of RATE by the step, None after the last one.

    `loss_of`: of a batch that was drawn; drawing is no part of a step.
    """
    weights = [*model.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=RATE, weight_decay=WEIGHT_DECAY, fused=True)
    clock, done = clock_for(weights[0].device), Fit([], [])
    while (share := rate(len(done.losses))) is not None:
        batch = draw()
        optimizer.param_groups[0]["lr"] = RATE * share
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


def train(
    model: Decoder,
    task: Task,
    rate: Callable[[int], float | None],
    seed: int,
    loss_of: Callable[[Batch], Tensor] | None = None,
) -> Fit:
    """`model` is changed. Equal seeds see equal batches, whatever the model.

    `loss_of`: that of the whole model, if nothing else is said.
    """
    device, generator = next(model.parameters()).device, Generator().manual_seed(DRAWS + seed)

    def draw() -> Batch:
        return task.draw(generator, BATCH).to(device)

    peak_bytes = step_bytes(model, draw())
    done = fit(model, rate, draw, loss_of or partial(_loss, model))
    return done._replace(peak_bytes=peak_bytes)


def learnt(
    name: str, task: Task, model: Decoder, done: Fit, seed: int, tested: Batch, rate: Learning
) -> dict[str, Any]:
    """What every finding of a training on a task has. `tested`: on new sequences."""
    loss, accuracy = quality(model, tested)
    return {
        "task": name,
        "heads": model.problem.heads,
        "d_k": model.problem.d_k,
        "train_seed": seed,
        "d_model": D_MODEL,
        "depth": task.depth,
        "tokens": tested.tokens.shape[1],
        "batch": BATCH,
        "vocabulary": task.vocabulary,
        "parameter_count": sum(one.numel() for one in model.parameters() if one.requires_grad),
        "steps": len(done.losses),
        "goal_ratio": rate.goal.right_ratio,
        "limit_steps": rate.goal.limit_steps,
        "learning_rate": RATE * rate.stays_at,
        "learnt_steps": rate.learnt_steps,
        "looked_steps": [*rate.right],
        "looked_accuracy_ratio": [*rate.right.values()],
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


def quality(model: Decoder, batch: Batch) -> tuple[float, float]:
    """Loss in nats per scored token, and the share of them that is right."""
    with torch.no_grad():
        logits = model(batch.tokens)[0]
        return float(loss_of(logits, batch.targets)), share_right(logits, batch.targets)


def share_right(logits: Tensor, targets: Tensor) -> float:
    """Of the scored tokens."""
    return float((logits.argmax(-1) == targets)[targets != UNSCORED].double().mean())


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    return cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=UNSCORED)


def _loss(model: Decoder, batch: Batch) -> Tensor:
    return loss_of(model(batch.tokens)[0], batch.targets)
