"""The heads of a model that the user names: where they look, and which of them are needed."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from ....impls.problem import Problem
from ...files.errors import BadInput, option
from ...studies.attachments import Tried
from .. import looks, removal
from ..checkpoints.model import Layer, Model
from ..checkpoints.sequences import Sequences, given, repeated
from ..findings import CheckpointHeads
from ..removal import Head

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


def tried(device: torch.device, most_bytes: int | None, *, path: str, tokens: str | None) -> Tried:
    """Open a checkpoint and its tokens, and look at nothing."""
    try:
        ready(Path(path), tokens, device, 0, most_bytes)
    except BadInput as error:
        return Tried(list(error.problems), [])
    return Tried([], [])


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
    return {
        "single_sequence_loss_nats": [
            [single[Head(at, one)] for one in range(heads)] for at, heads in enumerate(model.heads)
        ],
        "pruned_heads_left": [len(order) - len(some) for some in gone],
        "pruned_sequence_loss_nats": [removal.without(model, some, few, loss) for some in gone],
        **saved(layers, model.d_model, gone),
    }


def saved(layers: Sequence[Layer], d_model: int, steps: Iterable[list[Head]]) -> dict[str, Any]:
    """What is needed no more without these heads: entries of matrices, and which share of all heads
    of keys and values.

    A head saves its columns of W_Q and rows of W_O, d_model d_k each; keys and values, and their
    columns of W_K and W_V, go with the last head that shares them. {} if keys and values differ in
    width: then their projections are of another form.
    """
    if any(one.d_k != one.d_v for one in layers):
        return {}
    entries, shares = [], []
    for gone in steps:
        pairs, width = 0, 0
        for at, (p, kv_heads, d_k, _) in enumerate(layers):
            sharing = Counter(one.head * kv_heads // p.shape[1] for one in gone if one.block == at)
            unused = sum(count == p.shape[1] // kv_heads for count in sharing.values())
            pairs += unused
            width += 2 * d_k * (sharing.total() + unused)
        entries.append(width * d_model)
        shares.append(pairs / sum(one.kv_heads for one in layers))
    return {"pruned_saved_parameters": entries, "pruned_saved_cache_ratio": shares}
