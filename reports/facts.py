"""One answer as a flat object: what `show --format json` and `compare --format json` print."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from ..harness.stats.intervals import Interval
from .judging.ratio import Ratio
from .quantity import Quantity
from .words import Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """`answer`: to which question. `place`: run, backend and the axes that tell cases apart.
    `quantity`: its name ends in its unit. `low`, `high`: the 95 % interval. `mark`: how sure it is,
    in words. `reason`: why there is no value, or what keeps it from being sure.
    """

    answer: str
    place: Mapping[str, Any]
    quantity: str
    value: float | None
    low: float | None = None
    high: float | None = None
    mark: str | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            found = getattr(self, name)
            if found is not None and not isfinite(found):
                object.__setattr__(self, name, None)

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self)


def mark_word(mark: Mark | None) -> str | None:
    """`confirmed`, `not confirmed`, `same`, `too noisy`; None without a mark."""
    return mark.words.rpartition(", ")[2] if mark else None


def fact_of(
    answer: str,
    place: Mapping[str, Any],
    quantity: str,
    found: Ratio | Interval | Quantity | float | None,
    reason: str = "",
    mark: str | None = None,
) -> Fact:
    """`reason`: of what is no ratio, or why there is none; a ratio says how it was made."""
    if isinstance(found, Ratio):
        hows = (found.way, "" if found.paired else "unpaired", found.why_not_decided[2:])
        reason, mark = "; ".join(filter(None, hows)), mark_word(found.mark)
    low, high = (getattr(found, end, None) for end in ("low", "high"))
    return Fact(
        answer=answer,
        place=place,
        quantity=quantity,
        value=found if found is None or isinstance(found, int | float) else found.value,
        low=low,
        high=high,
        mark=mark,
        reason=reason,
    )
