"""What the heads of a user's model do, and which are missed: findings of checkpoint_heads.

A removal is judged sequence by sequence: the loss without a head less the loss with all heads, of
the same tokens. Intervals are over sequences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median
from typing import Any

from ...harness.stats.intervals import Interval, mean_interval
from ..data.run_meta import finite_number
from .trained_heads import LOCAL_SHARE

STUDY = "checkpoint_heads"
UNIT = "sequence"
Finding = Mapping[str, Any]
Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneHead:
    """`rise`: of the loss in nats without it; no readings if it was not removed. Shares and numbers
    are None if they are not known.
    """

    label: str
    entropy: float | None
    distance: float | None
    previous: float | None
    induction: float | None
    rank: float | None
    difference: float | None
    similarity: float | None
    rise: Interval

    @property
    def is_missed(self) -> bool:
        return self.rise.low > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedAt:
    """A model. `left`: the loss by how many heads are left. `maps`: of some heads, by label."""

    name: str
    finding: Finding
    loss: Interval
    heads: tuple[OneHead, ...]
    left: Mapping[int, Interval]
    maps: tuple[tuple[str, Rows], ...]

    @property
    def missed(self) -> list[OneHead]:
        return [one for one in self.heads if one.is_missed]

    @property
    def most_missed(self) -> OneHead | None:
        known = [one for one in self.heads if one.rise.units]
        return max(known, key=lambda one: one.rise.value, default=None)

    @property
    def median_rise(self) -> float | None:
        known = [one.rise.value for one in self.heads if one.rise.units]
        return median(known) if known else None

    def that(self, share: str) -> list[str]:
        """Heads with at least half of their weight there: `previous` or `induction`."""
        return [
            one.label
            for one in self.heads
            if (value := getattr(one, share)) is not None and value >= LOCAL_SHARE
        ]


def looked_at(run: Mapping[str, Any]) -> list[LookedAt]:
    found = run.get("studies")
    return [_model(one) for one in (found if isinstance(found, list) else []) if _is_one(one)]


def _model(one: Finding) -> LookedAt:
    whole = one["sequence_loss_nats"]
    sizes: list[int] = one["layer_heads"]
    layers = one["layers"] if _are_whole(one.get("layers"), len(sizes)) else range(len(sizes))
    labels = [
        [_label(layer, head, several=len(sizes) > 1) for head in range(count)]
        for layer, count in zip(layers, sizes, strict=True)
    ]
    names = {
        "entropy": "entropy_nats",
        "distance": "distance_tokens",
        "previous": "previous_share",
        "induction": "induction_share",
        "rank": "output_rank",
        "difference": "pattern_difference",
        "similarity": "output_similarity",
    }
    heads = [
        OneHead(
            label=labels[layer][head],
            rise=_rise(_at(one.get("single_sequence_loss_nats"), layer, head), whole),
            **{field: _number(_at(one.get(name), layer, head)) for field, name in names.items()},
        )
        for layer, count in enumerate(sizes)
        for head in range(count)
    ]
    return LookedAt(
        name=one["checkpoint"],
        finding=one,
        loss=mean_interval(whole, UNIT),
        heads=tuple(heads),
        left=_left(one),
        maps=_maps(one, labels),
    )


def _label(layer: int, head: int, *, several: bool) -> str:
    return f"block {layer + 1} head {head + 1}" if several else f"head {head + 1}"


def _rise(without: Any, whole: Sequence[float]) -> Interval:
    if not _are_numbers(without) or len(without) > len(whole):
        return mean_interval([], UNIT)
    pairs = zip(without, whole, strict=False)
    return mean_interval([fewer - every for fewer, every in pairs], UNIT)


def _left(one: Finding) -> dict[int, Interval]:
    left, losses = one.get("pruned_heads_left"), one.get("pruned_sequence_loss_nats")
    if not isinstance(losses, list) or not _are_whole(left, len(losses)):
        return {}
    assert isinstance(left, list)
    return {
        count: mean_interval(values, UNIT)
        for count, values in zip(left, losses, strict=True)
        if _are_numbers(values)
    }


def _maps(one: Finding, labels: list[list[str]]) -> tuple[tuple[str, Rows], ...]:
    drawn, maps = one.get("drawn_heads"), one.get("weight_rows")
    if not isinstance(drawn, list) or not isinstance(maps, list) or len(drawn) != len(maps):
        return ()
    found = []
    for place, rows in zip(drawn, maps, strict=True):
        if not _are_whole(place, 2) or not _is_map(rows):
            return ()
        label = _at(labels, *place)
        if label is None:
            return ()
        found.append((label, tuple(map(tuple, rows))))
    return tuple(found)


# ---- checks --------------------------------------------------------------------------------------


def _is_one(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and one.get("study") == STUDY
        and isinstance(one.get("checkpoint"), str)
        and isinstance(one.get("layer_heads"), list)
        and _are_whole(one["layer_heads"], len(one["layer_heads"]))
        and 0 < sum(one["layer_heads"]) < 100_000
        and _are_numbers(one.get("sequence_loss_nats"))
        and finite_number(one, "accuracy_ratio") is not None
    )


def _at(values: Any, *places: int) -> Any:
    """An element of nested lists; None if it is not there."""
    for place in places:
        if not isinstance(values, list) or place >= len(values):
            return None
        values = values[place]
    return values


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and isfinite(value) else None


def _are_numbers(values: Any) -> bool:
    return (
        isinstance(values, list)
        and bool(values)
        and all(type(one) in (int, float) and isfinite(one) for one in values)
    )


def _are_whole(values: Any, count: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) == count
        and all(type(one) is int and one >= 0 for one in values)
    )


def _is_map(rows: Any) -> bool:
    return (
        isinstance(rows, list)
        and bool(rows)
        and all(
            _are_numbers(row) and len(row) == len(rows) and all(0 <= one <= 1.0001 for one in row)
            for row in rows
        )
    )
