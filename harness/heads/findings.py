"""What studies of trained models find: models as in rows/findings.py, shared with reports.

Fields with a default may be missing: earlier versions did not have them, or only some findings do.
"""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from ..rows.findings import Count, Finding, Map, Maybe

Ratio = Annotated[float, Field(ge=0, le=1)]
Samples = list[Annotated[float, Field(gt=0, lt=1e12)]]
"""Times in ms."""
Numbers = list[list[Maybe]] | None
"""[block][head]; null where a head has none."""
Losses = list[float]


def square(rows: list[list[float]]) -> list[list[float]]:
    """Raises ValueError."""
    if len(rows) != len(rows[0]):
        raise ValueError("wanted as many keys as queries")
    return rows


Square = Annotated[Map, AfterValidator(square)]
"""Weights, [query][key], of the same tokens."""


class TrainedHeads(Finding):
    """One training of a small decoder on a task (training.py), with the losses beside it.

    `is_tuning`: a training of the grid of learning rates. `learnt_steps`: until `goal_ratio` of the
    answers were right; null if they were not within `limit_steps`.
    """

    STUDY = "trained_heads"
    task: str
    heads: Count
    train_seed: int
    is_tuning: bool = False
    learning_rate: float
    goal_ratio: Ratio
    limit_steps: Count
    learnt_steps: int | None = None
    looked_steps: list[int]
    looked_accuracy_ratio: list[Ratio]
    looked_loss_nats: Losses | None = None
    step_ms: Samples
    removed_heads: int | None = None
    whole_loss_nats: Maybe = None
    removed_after_loss_nats: Maybe = None
    removed_during_loss_nats: Maybe = None

    @model_validator(mode="after")
    def _sees_both(self) -> "TrainedHeads":
        if any(
            looked is not None and len(looked) != len(self.looked_steps)
            for looked in (self.looked_accuracy_ratio, self.looked_loss_nats)
        ):
            raise ValueError("wanted a value at each look")
        return self


class GradientDistance(Finding):
    """Norms at first weights, at distances 0, 1, ...; the fade is of ln norm."""

    STUDY = "gradient_distance"
    model: str
    seq_len: Count
    width: int | None = None
    gradient_norms: list[Annotated[float, Field(ge=0)]] | None = None
    fitted_tokens: int | None = None
    fade_per_token: Maybe = None
    fade_per_token_low: Maybe = None
    fade_per_token_high: Maybe = None

    @property
    def fade(self) -> tuple[float, float, float] | None:
        """Change of ln norm per token, and its bounds; None if one is missing."""
        value, low, high = self.fade_per_token, self.fade_per_token_low, self.fade_per_token_high
        return None if value is None or low is None or high is None else (value, low, high)


class CheckpointHeads(Finding):
    """A model that the user gave. Losses are of each sequence; `single_`: [block][head][sequence].

    `drawn_heads`: [block, head], of `weight_rows`.
    """

    STUDY = "checkpoint_heads"
    checkpoint: str
    format: str | None = None
    model_type: str | None = None
    d_model: int | None = None
    layers: list[Annotated[int, Field(ge=0)]] | None = None
    layer_heads: list[Annotated[int, Field(ge=0, lt=100_000)]]
    kv_heads: int | None = None
    vocabulary: int | None = None
    parameter_count: int | None = None
    trained_task: str | None = None
    trained_steps: str | None = None
    tokens: int | None = None
    token_source: str | None = None
    tokenizer_reason: str | None = None
    sequence_loss_nats: Annotated[Losses, Field(min_length=1)]
    accuracy_ratio: float
    entropy_nats: Numbers = None
    distance_tokens: Numbers = None
    distance_variance: Numbers = None
    previous_share: Numbers = None
    induction_share: Numbers = None
    output_rank: Numbers = None
    pattern_difference: Numbers = None
    output_similarity: Numbers = None
    nearest_difference: Numbers = None
    nearest_similarity: Numbers = None
    removal_sequences: int | None = None
    single_sequence_loss_nats: list[list[Losses]] | None = None
    pruned_heads_left: list[int] | None = None
    pruned_sequence_loss_nats: list[Losses] | None = None
    removal_reason: str | None = None
    sentence: list[str] | None = None
    drawn_heads: list[Annotated[list[int], Field(min_length=2, max_length=2)]] | None = None
    weight_rows: list[Square] | None = None

    @model_validator(mode="after")
    def _has_heads(self) -> "CheckpointHeads":
        if not sum(self.layer_heads):
            raise ValueError("wanted a head")
        told = (self.pruned_heads_left, self.drawn_heads)
        found = (self.pruned_sequence_loss_nats, self.weight_rows)
        if any(len(of or ()) != len(one or ()) for of, one in zip(told, found, strict=True)):
            raise ValueError("wanted a map of each head and a loss of each step")
        return self
