"""Small decoders that differ in their number of heads only, trained on tasks with known structure.

d_model, parameters, steps and batches are the same for every number of heads. Seeds are added until
the interval of the accuracy is narrow, from five on. A finding is one seed's training.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ...impls.block import Decoder
from ...impls.problem import Problem
from ..stats import mean_interval
from . import _head_metrics, _pruning, _smaller_layers, _training
from ._synthetic_tasks import Batch, Task, task
from ._training import held_out, one_thread, quality, seen
from .checkpoints import decoder_file, given

QUESTION = "What do 1 to 64 heads of one width learn, how well, and what does a step cost?"
PARTS = {
    "task": ("majority", "recall", "two_relations", "six_relations", "copy", "text"),
    "heads": (1, 2, 4, 8, 16, 32, 64),
}
PART_S = 7.0
SAVES_MODELS = True
STEPS = {
    "majority": 80,
    "recall": 150,
    "two_relations": 120,
    "six_relations": 170,
    "copy": 160,
    "text": 150,
}
FEWEST_SEEDS, MOST_SEEDS = 5, 6
NARROW_RATIO = 0.02  # half the width of the accuracy's interval at which seeds are enough
NOISE_RATIO = 0.5  # of the standard deviation of the embedded tokens
MOST_PRUNED = 16  # heads of a block
MOST_GREEDY = 8  # heads of the whole decoder: the number of trials is its square
MOST_DRAWN = 8  # heads of a block whose maps are kept
COSTED = 8  # heads of a block whose smaller layers are measured, for one seed
LOOKED_AT = 64  # sequences that metrics and pruning are about


def run(
    problem: Problem,
    device: torch.device,
    seed: int,
    *,
    task: str,
    heads: int,
    save_to: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """`problem` is not used: the shapes are those of _training.py."""
    accuracies: list[float] = []
    with one_thread():
        while not enough(accuracies):
            number = len(accuracies)
            one = (task, heads, device, seed + number)
            finding = trained(*one, maps=number == 0, save_to=save_to)
            accuracies.append(finding["accuracy_ratio"])
            yield {**finding, "seed_number": number}


def enough(accuracies: list[float]) -> bool:
    if len(accuracies) < FEWEST_SEEDS:
        return False
    found = mean_interval(accuracies)
    return len(accuracies) >= MOST_SEEDS or found.high - found.low <= 2 * NARROW_RATIO


def trained(
    name: str,
    heads: int,
    device: torch.device,
    seed: int,
    *,
    maps: bool,
    save_to: Path | None = None,
) -> dict[str, Any]:
    """One training, and what there is to see of it. `maps`: keep those of the first sequence.

    `save_to`: a folder for the trained model.
    """
    of = task(name)
    tested, known = held_out(of, seed, device), seen(of, seed, device)
    looked_at, judged_on = _first(tested), _first(known)
    model = _training.decoder(of, heads, device, seed)
    before = _head_metrics.heads_of(model, looked_at.tokens)
    done = _training.train(model, of, STEPS[name], seed)
    if save_to is not None:
        file = save_to / f"{name}-heads{heads}-seed{seed}{given.SUFFIX}"
        about: dict[str, str | int] = {"task": name, "train_seed": seed, "steps": STEPS[name]}
        decoder_file.save(model, file, about)
    after = _head_metrics.heads_of(model, looked_at.tokens)
    loss, accuracy = quality(model, tested)
    noisy_loss, noisy_accuracy = quality(model, tested, NOISE_RATIO)
    drawn = maps and heads <= MOST_DRAWN
    return {
        "task": name,
        "heads": heads,
        "train_seed": seed,
        "d_model": _training.D_MODEL,
        "depth": of.depth,
        "tokens": tested.tokens.shape[1],
        "batch": _training.BATCH,
        "vocabulary": of.vocabulary,
        "parameter_count": sum(one.numel() for one in model.parameters()),
        "steps": STEPS[name],
        "loss_nats": loss,
        "accuracy_ratio": accuracy,
        "seen_loss_nats": quality(model, known)[0],
        "noise_ratio": NOISE_RATIO,
        "noisy_loss_nats": noisy_loss,
        "noisy_accuracy_ratio": noisy_accuracy,
        "step_loss_nats": done.losses,
        "step_ms": done.step_ms,
        "step_peak_bytes": done.peak_bytes,
        **_named(_head_metrics.metrics(before, looked_at.tokens), "before"),
        **_named(_head_metrics.metrics(after, looked_at.tokens), "after"),
        **_pruned(model, looked_at, judged_on, costly=maps and heads == COSTED),
        "sentence": _words(of, looked_at) if drawn else None,
        "weight_rows_before": _head_metrics.maps(before) if drawn else None,
        "weight_rows_after": _head_metrics.maps(after) if drawn else None,
    }


def _named(found: dict[str, _head_metrics.Numbers], when: str) -> dict[str, Any]:
    return {f"{name}_{when}": values for name, values in found.items()}


def _pruned(model: Decoder, looked_at: Batch, judged_on: Batch, *, costly: bool) -> dict[str, Any]:
    """Losses on the sequences that are looked at, with all heads and without some.

    `costly`: also what the really smaller layers cost.
    """
    few = model.problem.heads <= MOST_PRUNED
    least = len(_pruning.every_head(model)) <= MOST_GREEDY
    order = _pruning.by_importance(model, judged_on) if few else None
    return {
        "whole_loss_nats": quality(model, looked_at)[0],
        "single_loss_nats": None if order is None else _pruning.single_losses(model, looked_at),
        "pruned_heads": None if order is None else [list(one) for one in order],
        "pruned_loss_nats": (
            None if order is None else _pruning.losses_in_order(model, order, looked_at)
        ),
        "greedy_loss_nats": (
            _pruning.losses_greedily(model, looked_at, judged_on) if least else None
        ),
        **(
            _smaller_layers.cost(model, order, looked_at)
            if costly and order is not None
            else dict.fromkeys(_smaller_layers.FIELDS)
        ),
    }


def _first(batch: Batch) -> Batch:
    return Batch(batch.tokens[:LOOKED_AT], batch.targets[:LOOKED_AT])


def _words(of: Task, batch: Batch) -> list[str]:
    return [of.names[token] for token in batch.tokens[0].tolist()]
