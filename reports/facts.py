"""One answer as a flat object: what `show --format json` and `compare --format json` print."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from .judging.ratio import Ratio
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


def ratio_fact(
    answer: str, place: Mapping[str, Any], ratio: Ratio | None, missing: str = "", of: str = "time"
) -> Fact:
    """`missing`: why there is none."""
    if ratio is None:
        return Fact(answer=answer, place=place, quantity=f"{of}_ratio", value=None, reason=missing)
    hows = (ratio.way, "" if ratio.paired else "unpaired", ratio.why_not_decided.removeprefix(", "))
    return Fact(
        answer=answer,
        place=place,
        quantity=f"{of}_ratio",
        value=ratio.value,
        low=ratio.low,
        high=ratio.high,
        mark=mark_word(ratio.mark),
        reason="; ".join(filter(None, hows)),
    )
