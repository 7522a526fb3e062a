"""Gradients over distance before and after training, from the study trained_gradients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log
from typing import Any, Literal

from ...harness.stats.intervals import Interval, mean_interval
from ..data.run_meta import finite_number

STUDY = "trained_gradients"
When = Literal["before", "after"]
WHEN: tuple[When, ...] = ("before", "after")
Finding = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """The trainings of one model, at least one."""

    model: str
    trainings: tuple[Finding, ...]

    @property
    def accuracy(self) -> Interval:
        """The share of right answers, over seeds."""
        return mean_interval([one["accuracy_ratio"] for one in self.trainings], "seed")

    def fade(self, when: When) -> Interval:
        """Change of ln of the gradient's norm per token of distance, over seeds."""
        found = [finite_number(one, f"fade_per_token_{when}") for one in self.trainings]
        return mean_interval([one for one in found if one is not None], "seed")

    def norms(self) -> list[Interval | None]:
        """After training, at distances 1, 2, ...: geometric means; None where one is 0."""
        columns = zip(*(one["gradient_norms_after"] for one in self.trainings), strict=False)
        return [_geometric(values) for values in columns]


def trained_models(run: Mapping[str, Any]) -> list[TrainedModel]:
    found = run.get("studies")
    by_model: dict[str, list[Finding]] = {}
    for one in found if isinstance(found, list) else []:
        if _is_known(one):
            by_model.setdefault(one["model"], []).append(one)
    return [TrainedModel(model=name, trainings=tuple(some)) for name, some in by_model.items()]


def _geometric(values: Sequence[float]) -> Interval | None:
    if min(values) <= 0:
        return None
    found = mean_interval([log(one) for one in values], "seed")
    value, low, high = (
        exp(one) if abs(one) < 300 else float("nan") for one in (found.value, found.low, found.high)
    )
    return Interval(value=value, low=low, high=high, units=found.units)


def _is_known(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and one.get("study") == STUDY
        and isinstance(one.get("model"), str)
        and finite_number(one, "accuracy_ratio") is not None
        and all(_are_norms(one.get(f"gradient_norms_{when}")) for when in WHEN)
    )


def _are_norms(values: Any) -> bool:
    return (
        isinstance(values, list)
        and bool(values)
        and all(type(value) in (int, float) and isfinite(value) and value >= 0 for value in values)
    )
