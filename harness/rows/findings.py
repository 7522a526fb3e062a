"""What studies find: a model for each study, which it writes and reports read.

A finding is flat: numbers, text and lists, numbers with their unit in the name. What reports rely
on has no default; a finding of another form is left out when it is read. What only the table of a
study shows, and what later versions added, may be missing.

Packs have such a file of their own.
"""

from contextlib import suppress
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

F = TypeVar("F", bound="Finding")


class Finding(BaseModel):
    """A finding of the study `STUDY`. Raises ValidationError if a value is not of its type."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)
    STUDY: ClassVar[str]

    def __getitem__(self, name: str) -> Any:
        """A field by a name that is computed."""
        return getattr(self, name)

    def stored(self) -> dict[str, Any]:
        """As it stands in the row of its study."""
        return self.model_dump(exclude_unset=True)


def findings_of(model: type[F], found: object) -> list[F]:
    """The findings of the model's study among those of a run, each with the name of its `study`.

    Those that are not of the model's form are left out, and fields that only later versions know.
    """
    kept: list[F] = []
    for one in found if isinstance(found, list) else []:
        if isinstance(one, dict) and one.get("study") == model.STUDY:
            known = {name: one[name] for name in model.model_fields if name in one}
            with suppress(ValidationError):
                kept.append(model.model_validate(known))
    return kept


def of_one_size(rows: list[list[Any]]) -> list[list[Any]]:
    """Raises ValueError."""
    if len({len(row) for row in rows}) > 1:
        raise ValueError("wanted rows of one length")
    return rows


Count = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1.0001)]  # of sums, which round
Map = Annotated[
    list[Annotated[list[Share], Field(min_length=1)]],
    Field(min_length=1),
    AfterValidator(of_one_size),
]
"""Weights, [query][key]."""
Maybe = float | None


class AttentionMap(Finding):
    """A head of a small layer. `weight_rows`: [query][key]."""

    STUDY = "attention_maps"
    head: int
    heads: int | None = None
    causal: bool | None = None
    mean_entropy_nats: float
    weight_rows: Map


class WorkedExample(Finding):
    """Three tokens under one mask; rows are [query or key][column], a removed score is null.

    `worst_error`: the largest absolute difference of an output of `backends` in `dtype`.
    """

    STUDY = "worked_example"
    mask: str
    query_rows: Annotated[list[list[Maybe]], Field(min_length=1)]
    key_rows: list[list[Maybe]]
    value_rows: list[list[Maybe]]
    score_rows: list[list[Maybe]]
    weight_rows: list[list[Maybe]]
    output_rows: list[list[Maybe]]
    backends: list[str]
    dtype: str
    worst_error: float

    @model_validator(mode="after")
    def _has_a_row_per_token(self) -> "WorkedExample":
        others = (self.key_rows, self.value_rows)
        results = (self.score_rows, self.weight_rows, self.output_rows)
        if any(len(rows) != len(self.query_rows) for rows in (*others, *results)):
            raise ValueError("wanted a row per token")
        return self


class Timed(Finding):
    """Has times.

    `contended_blocks`: of `blocks` (of `generation`: timed sequences), those that other work
    disturbed; absent in rows of earlier versions. `process`: which of several it was timed in;
    `processes`: how many it is taken from, once it is read.
    """

    contended_blocks: int | None = None
    blocks: int | None = None
    process: int | None = None
    processes: int = 1


class Generated(Timed):
    """A backend that has generated `tokens` tokens, with a cache and without (`full`).

    Times of the last step and of all, each with its interval; null if `complaint` says that cached
    steps are not the full pass, or if nothing was timed. `exponent`: of the time of all steps over
    that of half as many, log2.
    """

    STUDY = "generation"
    backend: str
    tokens: Count
    d_model: Count
    heads: Count
    kv_heads: Count
    dtype: str | None = None
    error_ratio: Maybe = None
    complaint: str
    cache_bytes: Count
    cached_step_flops: Count
    cached_total_flops: Count
    full_step_flops: Count
    full_total_flops: Count
    cached_step_ms: Maybe = None
    cached_step_low_ms: Maybe = None
    cached_step_high_ms: Maybe = None
    cached_total_ms: Maybe = None
    cached_total_low_ms: Maybe = None
    cached_total_high_ms: Maybe = None
    cached_total_exponent: Maybe = None
    cached_total_low_exponent: Maybe = None
    cached_total_high_exponent: Maybe = None
    full_step_ms: Maybe = None
    full_step_low_ms: Maybe = None
    full_step_high_ms: Maybe = None
    full_total_ms: Maybe = None
    full_total_low_ms: Maybe = None
    full_total_high_ms: Maybe = None
    full_total_exponent: Maybe = None
    full_total_low_exponent: Maybe = None
    full_total_high_exponent: Maybe = None
    full_over_cached_step_ratio: Maybe = None
    full_over_cached_step_low_ratio: Maybe = None
    full_over_cached_step_high_ratio: Maybe = None
    full_over_cached_total_ratio: Maybe = None
    full_over_cached_total_low_ratio: Maybe = None
    full_over_cached_total_high_ratio: Maybe = None


class LayerProperty(Finding):
    """Whether a property held in all random cases that a backend computed.

    Without `backend` in earlier rows, of the textbook formula in float64.
    """

    STUDY = "layer_properties"
    property: str
    backend: str = ""
    dtype: str | None = None
    holds: bool
    worst_error_ratio: Maybe = None
    case_count: int | None = None
    tolerance_ratio: Maybe = None


class AttentionFact(Finding):
    """`holding_ratio`: the share of random cases in which a statement held.

    Without `backend`, of the textbook formula in float64. `complaint`: what torch raised.
    """

    STUDY = "attention_facts"
    statement: str
    backend: str = ""
    dtype: str | None = None
    complaint: str = ""
    holds: bool
    holding_ratio: float
    worst_error_ratio: Maybe = None
    case_count: int
    tolerance_ratio: Maybe = None


class HeadCopy(Finding):
    """What joining the heads copies, by how they lie in memory; by `backend` in earlier rows."""

    STUDY = "head_copies"
    layout: str = ""
    backend: str = ""
    heads: int
    copied_bytes: int | None
    output_bytes: int | None = None


class HeadFlops(Finding):
    """FLOPs of a layer that torch counted while a backend ran; null if it cannot see them."""

    STUDY = "head_flops"
    backend: str
    heads: Count
    d_model: Count
    seq_len: Count
    flops: int | None


class ParameterCount(Finding):
    """Parameters of a layer; `d_k_rule`: how the width of a head follows from their number."""

    STUDY = "parameter_count"
    d_k_rule: str
    heads: int
    d_model: int | None = None
    parameter_count: int


class ProjectionEquality(Finding):
    """Whether one projection for all heads gives what one per head gives."""

    STUDY = "projection_equality"
    dtype: str | None = None
    heads: int | None = None
    holds: bool
    worst_error_ratio: Maybe = None
    tolerance_ratio: Maybe = None


class ScoreScale(Finding):
    """Scores and softmax of random queries and keys, `scaled` by 1/sqrt(d_k) or not.

    `of`: the layer that they are of at its first weights, or the backend whose weights show them.
    The derivatives are absent there, and in rows of earlier versions.
    """

    STUDY = "score_scale"
    d_k: Count
    scaled: bool
    of: str = ""
    score_variance: Maybe = None
    softmax_gradient: Maybe = None
    softmax_gradient_low: Maybe = None
    softmax_gradient_high: Maybe = None
    query_gradient_norm: Maybe = None
    query_gradient_norm_low: Maybe = None
    query_gradient_norm_high: Maybe = None
    score_variance_low: Maybe = None
    score_variance_high: Maybe = None
    entropy_ratio: Maybe = None
    certain_row_ratio: Maybe = None
    fp16_overflow_ratio: Maybe = None

    def bounded(self, name: str) -> tuple[float, float, float, float] | None:
        """d_k, a value and its bounds; None if one is missing."""
        value, low, high = (self[f"{name}{end}"] for end in ("", "_low", "_high"))
        return None if None in (value, low, high) else (self.d_k, value, low, high)


class Precision(Finding):
    """A backend's error against float64, of output and gradients the worse."""

    STUDY = "precision"
    backend: str
    dtype: str
    seq_len: int
    causal: bool | None = None
    error_l2_ratio: Maybe
    error_ratio: Maybe = None
    complaint: str | None = None


class BatchInvariance(Finding):
    """How far a backend's output in a batch is from that of another call, and of one alone."""

    STUDY = "batch_invariance"
    backend: str
    dtype: str | None = None
    seq_len: int | None = None
    kv_seq_len: int | None = None
    batch: int | None = None
    again_error_l2_ratio: Maybe = None
    batch_error_l2_ratio: float
    output_digest: str | None = None


class EachAlone(Timed):
    """What a call for each sequence costs beside one for the batch, whose bits depend on it."""

    STUDY = "batch_invariance"
    backend: str
    kv_seq_len: int
    batch: int
    alone_ratio: float
    alone_low_ratio: Maybe
    alone_high_ratio: Maybe
    alone_peak_bytes: int | None = None
    batch_peak_bytes: int | None = None


class LinformerProjection(Finding):
    """How near Linformer comes to exact attention, by the `inputs` and by its `projections`."""

    STUDY = "linformer_projections"
    inputs: str
    projections: str
    seq_len: int
    rank: int
    d_k: int | None = None
    seeds: int
    training_steps: int | None = None
    output_cosine: float
    output_cosine_low: float
    output_cosine_high: float
    error_l2_ratio: float
    error_l2_ratio_low: float
    error_l2_ratio_high: float
