"""What studies of trained models find: models as in rows/findings.py, shared with reports.

Fields with a default may be missing: earlier versions did not have them, or only some findings do.
"""

from math import inf
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from ..rows.findings import Count, Finding, Map, Maybe

Ratio = Annotated[float, Field(ge=0, le=1)]
Samples = list[Annotated[float, Field(gt=0, lt=1e12)]]
"""Times in ms."""
Numbers = list[list[Maybe]] | None
"""[block][head]; null where a head has none."""
Losses = list[float]
When = Literal["before", "after"]
Order = Literal["pruned", "greedy"]
"""In which heads were removed: by importance, by trial."""


def square(rows: list[list[float]]) -> list[list[float]]:
    """Raises ValueError."""
    if len(rows) != len(rows[0]):
        raise ValueError("wanted as many keys as queries")
    return rows


Square = Annotated[Map, AfterValidator(square)]
"""Weights, [query][key], of the same tokens."""
Maps = Annotated[list[list[Square]], Field(min_length=1)]
"""[block][head]."""


class Trained(Finding):
    """One seed's training, and what the model answers on new sequences.

    `step_peak_bytes`: above parameters and batch.
    """

    train_seed: int
    accuracy_ratio: Ratio
    loss_nats: Maybe = None
    steps: int | None = None
    batch: int | None = None
    parameter_count: int | None = None
    step_loss_nats: Losses | None = None
    step_ms: Samples | None = None
    step_peak_bytes: int | None = None

    @property
    def accuracy_points(self) -> float:
        return 100 * self.accuracy_ratio


class OnTask(Trained):
    """Of a small decoder (training.py).

    `learnt_steps`: until `goal_ratio` of the answers were right; null if they were not within
    `limit_steps`, or without a goal. Rows of earlier versions lack all of them: every model was
    trained for the same `steps`.
    """

    task: str
    heads: Count
    d_k: int | None = None
    goal_ratio: Maybe = None
    limit_steps: int | None = None
    learning_rate: Maybe = None
    learnt_steps: int | None = None
    looked_steps: list[int] | None = None
    looked_accuracy_ratio: list[Ratio] | None = None
    d_model: int | None = None
    depth: int | None = None
    tokens: int | None = None
    vocabulary: int | None = None

    @property
    def steps_until_learnt(self) -> float | None:
        """Infinite if it took more than the limit; None if nothing was to be reached."""
        if self.goal_ratio is None or self.limit_steps is None:
            return None
        return inf if self.learnt_steps is None else self.learnt_steps

    def accuracy_at(self, steps: float) -> float | None:
        """At the last look by then, which a training that ended earlier has at its end."""
        looks = zip(self.looked_steps or (), self.looked_accuracy_ratio or (), strict=False)
        return next((right for step, right in [*looks][::-1] if step <= steps), None)


class TrainedHeadWidth(OnTask):
    """A task with so many heads of one width, whatever the width of the model."""

    STUDY = "trained_head_width"


class TrainedHeads(OnTask):
    """A task with so many heads.

    Heads were removed in the order `pruned_heads`, [block, head], and greedily; a loss per number
    of removed heads, which in earlier rows is its place.
    """

    STUDY = "trained_heads"
    seed_number: int | None = None
    loss_nats: float
    whole_loss_nats: Maybe = None
    single_loss_nats: list[Losses] | None = None
    pruned_heads: list[list[int]] | None = None
    pruned_removed_heads: list[int] | None = None
    pruned_loss_nats: Losses | None = None
    greedy_removed_heads: list[int] | None = None
    greedy_loss_nats: Losses | None = None

    @model_validator(mode="after")
    def _says_of_what(self) -> "TrainedHeads":
        pairs = (
            (self.pruned_removed_heads, self.pruned_loss_nats),
            (self.greedy_removed_heads, self.greedy_loss_nats),
        )
        if any(of is not None and len(of) != len(found or ()) for of, found in pairs):
            raise ValueError("wanted a loss for each number of removed heads")
        return self

    @property
    def rises_nats(self) -> list[float]:
        """Of the loss without one head, of each that was removed alone."""
        whole, blocks = self.whole_loss_nats, self.single_loss_nats
        return [] if whole is None else [loss - whole for block in blocks or () for loss in block]

    def loss_by_removed_heads(self, order: Order) -> dict[int, float]:
        """Rows that do not say how many heads were removed removed one at a time."""
        losses, removed = self[f"{order}_loss_nats"] or (), self[f"{order}_removed_heads"]
        return dict(enumerate(losses) if removed is None else zip(removed, losses, strict=True))


class TrainedRoles(OnTask):
    """What heads look at in a text (roles.py), and the model without half of its heads.

    `_weight_`: of a role's queries on its keys; `_even_weight`: if all keys had the same. Losses
    and the share of right endings of verbs, `far_` of those whose subject is not the nearest noun:
    of the whole model; with heads removed after and during training; with half as many from the
    start.
    """

    STUDY = "trained_roles"
    subject_weight_before: Numbers = None
    subject_weight_after: Numbers = None
    subject_even_weight: float
    rare_weight_before: Numbers = None
    rare_weight_after: Numbers = None
    rare_even_weight: float
    local_weight_before: Numbers = None
    local_weight_after: Numbers = None
    local_even_weight: float
    verb_count: int
    far_verb_count: int
    removed_heads: Count
    whole_nats: float
    whole_endings_ratio: float
    whole_far_endings_ratio: Maybe = None
    pruned_after_nats: float
    pruned_after_endings_ratio: float
    pruned_after_far_endings_ratio: Maybe = None
    pruned_during_nats: float
    pruned_during_endings_ratio: float
    pruned_during_far_endings_ratio: Maybe = None
    half_from_start_nats: float
    half_from_start_endings_ratio: float
    half_from_start_far_endings_ratio: Maybe = None


OF_HEADS = (
    *("itself_share", "near_share", "first_share", "far_share", "single_sequence_loss_nats"),
)
OF_STEPS = ("pruned_sequence_loss_nats", "pruned_saved_parameters", "pruned_saved_cache_ratio")


class CheckpointHeads(Finding):
    """A model that the user gave. Losses are of each sequence; `single_`: [layer][head][sequence],
    `pruned_`: of each step, the least important heads first. `_share`: [layer][head], of the weight
    (looks.py), `even_shares`: in their order, of a head that looks at all tokens alike.
    """

    STUDY = "checkpoint_heads"
    checkpoint: str
    model_type: str | None = None
    layer_heads: list[Annotated[int, Field(ge=0, lt=100_000)]]
    parameter_count: int | None = None
    tokens: int | None = None
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
    def _has_heads(self) -> "CheckpointHeads":
        shape, whole = self.layer_heads, len(self.pruned_heads_left or ())
        of_heads = [self[name] for name in OF_HEADS]
        of_steps = [self[name] for name in OF_STEPS]
        if not sum(shape):
            raise ValueError("wanted a head")
        if any(one is not None and list(map(len, one)) != shape for one in of_heads):
            raise ValueError("wanted a number of each head")
        if any(one is not None and len(one) != whole for one in of_steps):
            raise ValueError("wanted a number of each step")
        return self
