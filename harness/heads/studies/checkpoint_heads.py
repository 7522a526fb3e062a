"""The heads of a model that the user names with --checkpoint: what they look at, who is missed."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ....impls.problem import Problem
from ...files.errors import BadInput, option
from ...studies.attachments import Tried
from .. import head_metrics, removal
from ..checkpoints import decoder_file, hugging_face
from ..checkpoints.sequences import Sequences, sequences_for
from ..findings import CheckpointHeads
from ..removal import Gated, GatedDecoder, Head
from ..synthetic_tasks import Batch
from ..training import share_right

QUESTION = "What do the heads of a model look at, and which of them can be removed?"
TAKES = "checkpoint"
QUESTION_OF = "What do the heads of {names} look at, and which of them can be removed?"
MOST_DRAWN = 8  # heads whose maps are kept
MOST_S = 30.0  # for all removals of a model, if nothing else is said
FEWEST_SEQUENCES = 4
MOST_STEPS = 16  # of the curve of fewer and fewer heads
REMOVALS = (
    *("single_sequence_loss_nats", "pruned_heads_left", "pruned_sequence_loss_nats"),
    *("removal_sequences", "removal_reason"),
)


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
    model, sequences = ready(Path(path), tokens, device, seed, most_bytes)
    yield finding(model, checkpoint, sequences, most_s)


def tried(device: torch.device, most_bytes: int | None, *, path: str, tokens: str | None) -> Tried:
    """Open a checkpoint and its tokens, and look at nothing."""
    try:
        unnamed = ready(Path(path), tokens, device, 0, most_bytes)[1].unnamed
    except BadInput as error:
        return Tried(list(error.problems), [])
    return Tried([], [unnamed] if unnamed else [])


def ready(
    path: Path, tokens: str | None, device: torch.device, seed: int, most_bytes: int | None
) -> tuple[Gated, Sequences]:
    """Raises BadInput."""
    model = opened(path, device, most_bytes)
    file = None if tokens is None else Path(tokens)
    return model, sequences_for(model.about, path, file, seed, device)


def opened(path: Path, device: torch.device, most_bytes: int | None = None) -> Gated:
    """Raises BadInput."""
    if path.is_dir():
        return hugging_face.HuggingFaceModel(path, device, most_bytes)
    return GatedDecoder(*decoder_file.read(path, device, most_bytes))


def finding(
    model: Gated, name: str, sequences: Sequences, most_s: float = MOST_S
) -> CheckpointHeads:
    about, batch = model.about, sequences.looked_at
    heads = model.looked_at(batch.tokens)
    without = removed(model, batch, sequences.judged_on, most_s)
    metrics = head_metrics.metrics(heads, batch.tokens)
    told = {
        one: value for one, value in asdict(about).items() if one in CheckpointHeads.model_fields
    }
    fields: dict[str, Any] = {**told, **metrics, **dict.fromkeys(REMOVALS), **without}
    drawn = _drawn(model, without.get("single_sequence_loss_nats") or metrics["induction_share"])
    return CheckpointHeads(
        checkpoint=name,
        layer_heads=model.heads,
        trained_task=about.trained.get("task"),
        trained_steps=about.trained.get("steps"),
        tokens=batch.tokens.shape[1],
        token_source=sequences.source,
        tokenizer_reason=sequences.unnamed,
        sequence_loss_nats=removal.without(model, (), batch, removal.of_sequences),
        accuracy_ratio=removal.without(model, (), batch, share_right),
        **fields,
        sentence=sequences.names,
        drawn_heads=[list(one) for one in drawn],
        weight_rows=[heads[layer].weights[0, head].float().tolist() for layer, head in drawn],
    )


def removed(model: Gated, batch: Batch, judged_on: Batch, most_s: float) -> dict[str, Any]:
    """Fields of the finding: the loss of each sequence without each head, and with fewer and fewer.

    `most_s`: for all of it, by the time of the first pass.
    """
    begun, loss = time.perf_counter(), removal.of_sequences
    removal.without(model, (), batch, loss)
    pass_s, count = time.perf_counter() - begun, len(batch.tokens)
    passes = sum(model.heads) + min(sum(model.heads), MOST_STEPS) + 1
    fitting = int(count * most_s / max(passes * pass_s, 1e-9))
    if fitting < min(count, FEWEST_SEQUENCES):
        needed_s = passes * pass_s * min(count, FEWEST_SEQUENCES) / count
        reason = (
            f"{sum(model.heads)} heads: removing each would take about {needed_s:.0f} s, of at most"
            f" {most_s:.0f} s, half of the time limit; raise it with --timeout"
        )
        return {"removal_sequences": 0, "removal_reason": reason}
    few = batch.part(0, fitting)
    order = removal.by_importance(model, judged_on)
    steps = min(len(order), MOST_STEPS)
    gone = sorted({round(len(order) * step / steps) for step in range(steps + 1)})
    return {
        "removal_sequences": len(few.tokens),
        "single_sequence_loss_nats": removal.single(model, few, loss),
        "pruned_heads_left": [len(order) - many for many in gone],
        "pruned_sequence_loss_nats": removal.in_order(model, order, gone, few, loss),
    }


def _drawn(model: Gated, weight: list[list[Any]]) -> list[Head]:
    """The heads that are missed most, in order of layers; if none was removed, those that look
    most at what followed the same token before.
    """

    def size(one: Head) -> float:
        of = weight[one.block][one.head]
        return sum(of) if isinstance(of, list) else of or 0.0

    return sorted(sorted(removal.every_head(model), key=size, reverse=True)[:MOST_DRAWN])
