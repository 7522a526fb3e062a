"""What studies of trained models find: models as in rows/findings.py, shared with reports.

Fields with a default may be missing: earlier versions did not have them, or only some findings do.
"""

from typing import Annotated, Any

from pydantic import Field, model_validator

from ..rows.findings import Count, Finding, Maybe

Ratio = Annotated[float, Field(ge=0, le=1)]
Samples = list[Annotated[float, Field(gt=0, lt=1e12)]]
"""Times in ms."""
Numbers = list[list[Maybe]] | None
"""[block][head]; null where a head has none."""
Losses = list[float]


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


class CheckpointHeads(Finding):
    """A model that the user gave. Losses are of each sequence; `single_`: [layer][head][sequence],
    `pruned_`: of each step, the least important heads first. `_share`: [layer][head], of the weight
    (studies/checkpoint_heads.py); `even_shares`: of a head that looks at all tokens alike.
    """

    STUDY = "checkpoint_heads"
    checkpoint: str
    layer_heads: list[Annotated[int, Field(gt=0, lt=100_000)]] = Field(min_length=1)
    parameter_count: int | None = None
    token_source: str | None = None
    itself_share: Numbers = None
    near_share: Numbers = None
    first_share: Numbers = None
    far_share: Numbers = None
    even_shares: list[float] | None = None
    sequence_loss_nats: Annotated[Losses, Field(min_length=1)]
    single_sequence_loss_nats: list[list[Losses]] | None = None
    pruned_heads_left: list[int] | None = None
    pruned_sequence_loss_nats: list[Losses] | None = None
    pruned_saved_parameters: list[int] | None = None
    pruned_saved_cache_ratio: list[float] | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> "CheckpointHeads":
        shares = (self.itself_share, self.near_share, self.first_share, self.far_share)
        of_heads: list[list[list[Any]] | None] = [*shares, self.single_sequence_loss_nats]
        if any(one is not None and [*map(len, one)] != self.layer_heads for one in of_heads):
            raise ValueError("wanted a number of each head")
        steps, saved = self.pruned_sequence_loss_nats, self.pruned_saved_parameters
        if any(one and len(one) != len(self.pruned_heads_left or ()) for one in (steps, saved)):
            raise ValueError("wanted a number of each step")
        return self
