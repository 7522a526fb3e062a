"""The heads of a model that the user names: where they look, and which of them are needed."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ....impls.problem import Problem
from ...files.errors import BadInput
from .. import removal
from ..checkpoint import Layer, Model, Sequences, sequences
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
    shares = [shares_of(one.weights) for one in layers]
    found: dict[str, Any] = {f"{kind}_share": [of[kind] for of in shares] for kind in shares[0]}
    found |= {"model_type": model.kind, "tokens": (n := some.looked_at.tokens.shape[1])}
    yield CheckpointHeads(
        checkpoint=checkpoint,
        layer_heads=model.heads,
        parameter_count=sum(one.numel() for one in model.model.parameters()),
        token_source=some.source,
        even_shares=even_shares(n),
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


# ---- where heads look ----------------------------------------------------------------------------
# Shares of the weight by where the key is:
#
#     itself   the query's own token
#     near     the NEAR_TOKENS tokens before it
#     first    the first token
#     far      all tokens between those
#
# Means over the queries that have a far token, so that each query has keys of all four kinds and
# the shares of a head sum to 1. Clark et al. 2019 (arXiv:1906.04341) count near tokens by layer;
# much weight on the first token is an attention sink (Xiao et al. 2024, arXiv:2309.17453).

NEAR_TOKENS = 4
KINDS = ("itself", "near", "first", "far")


def shares_of(p: Tensor) -> dict[str, list[float]]:
    """By kind, of each head. `p`: weights [batch, heads, n, n]. {} if no query has a far token."""
    n, begin = p.shape[-1], NEAR_TOKENS + 2
    if n <= begin:
        return {}
    key = torch.arange(n, device=p.device)
    back = key[begin:, None] - key  # [queries, n]
    first, near = key == 0, (back > 0) & (back <= NEAR_TOKENS)
    keys = (back == 0, near, first.expand_as(near), (back > NEAR_TOKENS) & ~first)
    weights = p[:, :, begin:].double()
    found = [(weights * some).sum(-1).mean((0, 2)).tolist() for some in keys]
    return dict(zip(KINDS, found, strict=True))


def even_shares(n: int) -> list[float]:
    """In the order of KINDS, of a head that gives all tokens so far the same weight."""
    seen = torch.arange(1, n + 1)
    even = (torch.ones(n, n).tril() / seen[:, None])[None, None]
    return [share for kind in shares_of(even).values() for share in kind]
