"""The heads of a model that the user names: where they look, and which of them are needed."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from ....impls.problem import Problem
from ...files.errors import BadInput
from .. import looks, removal
from ..checkpoints.model import Layer, Model
from ..checkpoints.sequences import Sequences, sequences
from ..findings import CheckpointHeads
from ..removal import Gates

QUESTION = "Where do the heads of a model look, and which of them can be removed?"
TAKES = "checkpoint"
QUESTION_OF = "Where do the heads of {names} look, and which of them can be removed?"
MOST_S = 30.0  # for all removals of a model, if nothing else is said
FEWEST_SEQUENCES = 4
MOST_STEPS = 16  # of the curve of fewer and fewer heads


def run(
    problem: Problem,
    device: torch.device,
    seed: int,
    *,
    checkpoint: str,
    path: str,
    tokens: str | None = None,
    most_bytes: int | None = None,
    most_s: float = MOST_S,
) -> Iterator[CheckpointHeads]:
    """`problem` is not used. `path`, `tokens`: files of the user's, which no run's file names.
    `most_s`: for all removals of heads.

    Raises BadInput.
    """
    model = Model(Path(path), device, most_bytes)
    some = sequences(model, tokens, seed)
    layers = model.seen(some.looked_at.tokens)
    shares = [looks.shares(one.weights) for one in layers]
    found: dict[str, Any] = {f"{kind}_share": [of[kind] for of in shares] for kind in shares[0]}
    found |= {"model_type": model.kind, "tokens": (n := some.looked_at.tokens.shape[1])}
    yield CheckpointHeads(
        checkpoint=checkpoint,
        layer_heads=model.heads,
        parameter_count=sum(one.numel() for one in model.model.parameters()),
        token_source=some.source,
        even_shares=looks.even_shares(n),
        sequence_loss_nats=removal.without(model, (), some.looked_at),
        **found,
        **removed(model, layers, some, most_s),
    )


def tried(
    device: torch.device, most_bytes: int | None, *, path: str, tokens: str | None
) -> list[str]:
    """Open a checkpoint and its tokens, and look at nothing. What is wrong with them."""
    try:
        sequences(Model(Path(path), device, most_bytes), tokens, 0)
    except BadInput as error:
        return list(error.problems)
    return []


def removed(
    model: Model, layers: Sequence[Layer], some: Sequences, most_s: float
) -> dict[str, Any]:
    """Fields of the finding: the loss of each sequence without each head, and with fewer and fewer.

    `most_s`: for all of it, by the time of a first pass; above that, fewer sequences are tried.
    """
    order = [*removal.importance(model, some.judged_on)]
    steps = min(len(order), MOST_STEPS)
    gone = [order[: round(len(order) * step / steps)] for step in range(steps + 1)]
    begun = time.perf_counter()
    removal.without(model, (), some.looked_at)
    needed_s = (len(order) + len(gone)) * (time.perf_counter() - begun)
    count = int(len(some.looked_at.tokens) * most_s / needed_s)
    few = some.looked_at.part(0, max(FEWEST_SEQUENCES, count))
    found: dict[str, Any] = {
        "single_sequence_loss_nats": [
            [removal.without(model, [(at, one)], few) for one in range(heads)]
            for at, heads in enumerate(model.heads)
        ],
        "pruned_heads_left": [len(order) - len(some) for some in gone],
        "pruned_sequence_loss_nats": [removal.without(model, some, few) for some in gone],
    }
    if all(one.d_k == one.d_v for one in layers):  # else their projections are of another form
        saves = [saved(layers, removal.gates_without(model, some, few.tokens)) for some in gone]
        found["pruned_saved_parameters"] = [model.d_model * rows for rows, _ in saves]
        found["pruned_saved_cache_ratio"] = [ratio for _, ratio in saves]
    return found


def saved(layers: Sequence[Layer], gates: Gates) -> tuple[int, float]:
    """Needed no more without the heads whose gate is 0: rows of matrices, each as wide as the
    model, and the share of all heads of keys and values.

    A head saves d_k columns of W_Q and d_k rows of W_O; keys and values, and their columns of W_K
    and W_V, go with the last head that shares them.
    """
    rows, pairs = 0, 0
    for layer, gate in zip(layers, gates, strict=True):
        unused = int((gate.view(layer.kv_heads, -1).amax(1) == 0).sum())
        rows += 2 * layer.d_k * (int((gate == 0).sum()) + unused)
        pairs += unused
    return rows, pairs / sum(layer.kv_heads for layer in layers)
