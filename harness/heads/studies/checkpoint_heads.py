"""The heads of a model that the user names: where they look, and which of them are needed."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from ....impls.problem import Problem
from ...files.errors import BadInput, option
from .. import looks, removal
from ..checkpoints.model import Layer, Model
from ..checkpoints.sequences import Sequences, given, repeated
from ..findings import CheckpointHeads
from ..removal import Gates, Head

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
    path: str = "",
    tokens: str | None = None,
    most_bytes: int | None = None,
    most_s: float = MOST_S,
) -> Iterator[CheckpointHeads]:
    """`problem` is not used. `path`, `tokens`: files of the user's, which no run's file names.
    `most_s`: for all removals of heads.

    Raises BadInput.
    """
    if not path:
        raise BadInput(
            f"checkpoint {checkpoint}: no file was given; wanted {option('checkpoint', 'PATH')}"
        )
    model, some = ready(Path(path), tokens, device, seed, most_bytes)
    batch, n = some.looked_at, some.looked_at.tokens.shape[1]
    layers = model.seen(batch.tokens)
    shares = [looks.shares(one.weights) for one in layers]
    looked: dict[str, Any] = {f"{kind}_share": [of[kind] for of in shares] for kind in shares[0]}
    yield CheckpointHeads(
        checkpoint=checkpoint,
        model_type=model.kind,
        layer_heads=model.heads,
        parameter_count=sum(one.numel() for one in model.model.parameters()),
        tokens=n,
        token_source=some.source,
        even_shares=looks.even_shares(n),
        sequence_loss_nats=removal.without(model, (), batch, removal.of_sequences),
        **looked,
        **removed(model, layers, some, most_s),
    )


def tried(
    device: torch.device, most_bytes: int | None, *, path: str, tokens: str | None
) -> list[str]:
    """Open a checkpoint and its tokens, and look at nothing. What is wrong with them."""
    try:
        ready(Path(path), tokens, device, 0, most_bytes)
    except BadInput as error:
        return list(error.problems)
    return []


def ready(
    folder: Path, tokens: str | None, device: torch.device, seed: int, most_bytes: int | None
) -> tuple[Model, Sequences]:
    """Raises BadInput."""
    model = Model(folder, device, most_bytes)
    if tokens is None:
        return model, repeated(model, seed, device)
    return model, given(model, folder, Path(tokens), device)


def removed(
    model: Model, layers: Sequence[Layer], some: Sequences, most_s: float
) -> dict[str, Any]:
    """Fields of the finding: the loss of each sequence without each head, and with fewer and fewer.

    `most_s`: for all of it, by the time of a first pass; above that, fewer sequences are tried.
    """
    every = [Head(at, one) for at, heads in enumerate(model.heads) for one in range(heads)]
    steps, count = min(len(every), MOST_STEPS), len(some.looked_at.tokens)
    begun, loss = time.perf_counter(), removal.of_sequences
    removal.without(model, (), some.looked_at, loss)
    needed_s = (len(every) + steps + 1) * (time.perf_counter() - begun)
    few = some.looked_at.part(0, max(FEWEST_SEQUENCES, int(count * most_s / needed_s)))
    order = removal.by_importance(model, some.judged_on)
    gone = [order[: round(len(order) * step / steps)] for step in range(steps + 1)]
    single = {one: removal.without(model, [one], few, loss) for one in every}
    found = {
        "single_sequence_loss_nats": [
            [single[Head(at, one)] for one in range(heads)] for at, heads in enumerate(model.heads)
        ],
        "pruned_heads_left": [len(order) - len(some) for some in gone],
        "pruned_sequence_loss_nats": [removal.without(model, some, few, loss) for some in gone],
    }
    if any(one.d_k != one.d_v for one in layers):
        return found  # their projections are of another form
    saves = [saved(layers, removal.gates_without(model, some, few.tokens)) for some in gone]
    entries, shares = zip(*saves, strict=True)
    of_model = [model.d_model * count for count in entries]
    return {**found, "pruned_saved_parameters": of_model, "pruned_saved_cache_ratio": [*shares]}


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
