"""Findings of studies as reports read them: a model of each, with the fields that reports rely on;
what several processes timed is one finding.

Those without a default must be there; fields that no model names are shown in tables.
"""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Annotated, Any, TypeVar

from pydantic import Field, model_validator

from ...harness.rows.findings import Count, Finding, Map, Maybe, findings_of
from ...harness.stats.intervals import latency_interval, mean_interval
from .row_groups import by

F = TypeVar("F", bound=Finding)
T = TypeVar("T", bound="Timed")
UNITS = ("_ms", "_ratio", "_exponent")
OWN = ("process", "contended_blocks", "blocks", "complaint")
"""What each process has of its own, beside its numbers."""


class AttentionMap(Finding):
    """A head of a small layer. `weight_rows`: [query][key]."""

    STUDY = "attention_maps"
    head: int
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
        names = ("key", "value", "score", "weight", "output")
        if any(len(self[f"{name}_rows"]) != len(self.query_rows) for name in names):
            raise ValueError("wanted a row per token")
        return self


class Timed(Finding):
    """Has times: numbers of UNITS, each of an interval also as `_low_` and `_high_`, or null.

    `contended_blocks`: of `blocks` (of `generation`: timed sequences), those that other work
    disturbed; absent in rows of earlier versions. `process`: which of several it was timed in;
    `processes`: how many it is taken from, once it is read.
    """

    contended_blocks: int | None = None
    blocks: int | None = None
    process: int | None = None
    processes: int = 1

    @model_validator(mode="after")
    def _has_numbers(self) -> "Timed":
        of_units = (value for name, value in self if name.endswith(UNITS))
        if any(type(value) not in (int, float, type(None)) for value in of_units):
            raise ValueError("wanted numbers")
        return self


class Generated(Timed):
    """A backend that has generated `tokens` tokens, with a cache and without (`full`).

    Times of the last step and of all, as `cached_step_ms`, absent or null if `complaint` says that
    cached steps are not the full pass; `full_total_exponent`: of the time of all steps over that of
    half as many, log2; `full_over_cached_step_ratio`.
    """

    STUDY = "generation"
    backend: str
    tokens: Count
    d_model: Count
    heads: Count
    kv_heads: Count
    error_ratio: Maybe = None
    complaint: str
    cache_bytes: Count
    cached_step_flops: Count
    cached_total_flops: Count
    full_step_flops: Count
    full_total_flops: Count


class LayerProperty(Finding):
    """Whether a property held in all random cases that a backend computed.

    Without `backend` in earlier rows, of the textbook formula in float64.
    """

    STUDY = "layer_properties"
    property: str
    backend: str = ""
    holds: bool
    worst_error_ratio: Maybe = None


class HeadCopy(Finding):
    """What joining the heads copies, by how they lie in memory; by `backend` in earlier rows."""

    STUDY = "head_copies"
    layout: str = ""
    backend: str = ""
    heads: int
    copied_bytes: int | None


class ParameterCount(Finding):
    """Parameters of a layer; `d_k_rule`: how the width of a head follows from their number."""

    STUDY = "parameter_count"
    d_k_rule: str
    heads: int
    parameter_count: int


class ScoreScale(Finding):
    """Scores and softmax of random queries and keys, `scaled` by 1/sqrt(d_k) or not.

    `of`: the layer that they are of at its first weights, or the backend whose weights show them;
    the entropy is absent there.
    """

    STUDY = "score_scale"
    d_k: Count
    scaled: bool
    of: str = ""
    score_variance: Maybe = None
    score_variance_low: Maybe = None
    score_variance_high: Maybe = None
    entropy_ratio: Maybe = None

    @property
    def variance(self) -> tuple[float, float, float] | None:
        """Of the scores, and its bounds; None if one is missing."""
        value, low, high = self.score_variance, self.score_variance_low, self.score_variance_high
        return None if value is None or low is None or high is None else (value, low, high)


class Precision(Finding):
    """A backend's error against float64, of output and gradients the worse."""

    STUDY = "precision"
    backend: str
    dtype: str
    seq_len: int
    error_l2_ratio: Maybe


class BatchInvariance(Finding):
    """How far a backend's output in a batch is from that of another call, and of one alone."""

    STUDY = "batch_invariance"
    backend: str
    batch_error_l2_ratio: float


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


# ---- of several processes ------------------------------------------------------------------------


def read_findings(model: type[F], found: object) -> list[F]:
    """Those of the model's study, as `findings_of`, but one for all processes that timed it."""
    every = findings_of(model, found)
    return list(_together(every)) if issubclass(model, Timed) else every


def _together(found: Iterable[Any]) -> Iterable[Any]:
    for same in by(found, _what).values():
        yield same[0] if len(same) == 1 else _of_processes(same)


def _what(one: Timed) -> tuple[Any, ...]:
    """What was timed: all but numbers with a unit."""
    kept = (pair for pair in one if pair[0] not in OWN and not pair[0].endswith(UNITS))
    return tuple(map(repr, kept))  # what no model names may be a list


def _of_processes(same: Sequence[T]) -> T:
    """Each number with the interval over processes: the same as that of latencies."""
    first = same[0]
    flags = [one.contended_blocks for one in same if one.contended_blocks is not None]
    found: dict[str, Any] = {
        "processes": len(same),
        "process": None,
        "blocks": sum(one.blocks or 0 for one in same),
        "contended_blocks": sum(flags) if len(flags) == len(same) else None,
    }
    fields = dict(first)
    for name in fields:
        base, _, unit = name.rpartition("_")
        low, high = f"{base}_low_{unit}", f"{base}_high_{unit}"
        if low in fields and high in fields:
            ends = _interval([one[name] for one in same], unit)
            found |= dict(zip((name, low, high), ends, strict=True))
    if "complaint" in fields:
        found["complaint"] = next((one["complaint"] for one in same if one["complaint"]), "")
    return first.model_copy(update=found)


def _interval(values: Sequence[float | None], unit: str) -> tuple[float | None, ...]:
    known = [one for one in values if one is not None]
    if len(known) < len(values):
        return None, None, None
    if unit == "exponent":
        one = mean_interval(known, "process")
    else:
        one = latency_interval([[[value]] for value in known])
    return tuple(end if isfinite(end) else None for end in (one.value, one.low, one.high))
