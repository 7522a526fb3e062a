"""The heads of a model that the user names with --checkpoint: what they look at, who is missed."""

from collections.abc import Iterator
from pathlib import Path

import torch

from ....impls.problem import Problem
from ...files.errors import BadInput
from ...studies.attachments import Tried
from .. import head_metrics
from ..checkpoints import decoder_file, hugging_face
from ..checkpoints.sequences import Sequences, sequences_for
from ..findings import CheckpointHeads
from ..gated import Gated, GatedDecoder
from ..head_metrics import Heads
from ..removal import MOST_S, Removed, removed, whole

QUESTION = "What do the heads of a model look at, and which of them can be removed?"
PART_S = 30.0
TAKES = "checkpoint"
QUESTION_OF = "What do the heads of {names} look at, and which of them can be removed?"
MOST_DRAWN = 8  # heads whose maps are kept


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
        raise BadInput(f"checkpoint {checkpoint}: no file was given; wanted --checkpoint PATH")
    model = opened(Path(path), device, most_bytes)
    file = None if tokens is None else Path(tokens)
    sequences = sequences_for(model.about, Path(path), file, seed, device)
    yield finding(model, checkpoint, sequences, most_s)


def tried(device: torch.device, most_bytes: int | None, *, path: str, tokens: str | None) -> Tried:
    """Open a checkpoint and its tokens, and look at nothing."""
    try:
        model = opened(Path(path), device, most_bytes)
        file = None if tokens is None else Path(tokens)
        unnamed = sequences_for(model.about, Path(path), file, 0, device).unnamed
    except BadInput as error:
        return Tried(list(error.problems), [])
    return Tried([], [unnamed] if unnamed else [])


def opened(path: Path, device: torch.device, most_bytes: int | None = None) -> Gated:
    """Raises BadInput."""
    if path.is_dir():
        return hugging_face.HuggingFaceModel(path, device, most_bytes)
    return GatedDecoder(*decoder_file.read(path, device, most_bytes))


def finding(
    model: Gated, name: str, sequences: Sequences, most_s: float = MOST_S
) -> CheckpointHeads:
    about, batch = model.about, sequences.looked_at
    heads, found = model.looked_at(batch.tokens), whole(model, batch)
    without = removed(model, batch, sequences.judged_on, most_s)
    metrics = head_metrics.metrics(heads, batch.tokens)
    drawn = _drawn(heads, without, metrics["induction_share"])
    return CheckpointHeads(
        checkpoint=name,
        format=about.format,
        model_type=about.model_type,
        d_model=about.d_model,
        layers=list(about.layers),
        layer_heads=model.heads,
        kv_heads=about.kv_heads,
        vocabulary=about.vocabulary,
        parameter_count=about.parameter_count,
        trained_task=about.trained.get("task"),
        trained_steps=about.trained.get("steps"),
        tokens=batch.tokens.shape[1],
        token_source=sequences.source,
        tokenizer_reason=sequences.unnamed,
        sequence_loss_nats=found.losses,
        accuracy_ratio=found.accuracy_ratio,
        **metrics,
        removal_sequences=without.sequences,
        single_sequence_loss_nats=without.single,
        pruned_heads_left=without.left,
        pruned_sequence_loss_nats=without.losses,
        removal_reason=without.reason,
        sentence=sequences.names,
        drawn_heads=[list(one) for one in drawn],
        weight_rows=[heads[layer].weights[0, head].float().tolist() for layer, head in drawn],
    )


def _drawn(
    heads: list[Heads], without: Removed, induction: head_metrics.Numbers
) -> list[tuple[int, int]]:
    """The heads that are missed most, in order of layers; if none was removed, those that look
    most at what followed the same token before.
    """
    every = [
        (layer, head) for layer, one in enumerate(heads) for head in range(one.weights.shape[1])
    ]
    losses = without.single

    def weight(one: tuple[int, int]) -> float:
        layer, head = one
        if losses is not None:
            return sum(losses[layer][head])
        return induction[layer][head] or 0.0

    return sorted(sorted(every, key=weight, reverse=True)[:MOST_DRAWN])
