"""Gradients over distance after training: the findings of trained_gradients, model by model."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, nan

from ...harness.learning.findings import TrainedGradients
from ...harness.rows.findings import findings_of
from ...harness.stats.intervals import Interval, mean_interval
from .trained import When


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """The trainings of one model, at least one."""

    model: str
    trainings: tuple[TrainedGradients, ...]

    @property
    def accuracy(self) -> Interval:
        """The share of right answers, over seeds."""
        return mean_interval([one.accuracy_ratio for one in self.trainings], "seed")

    def fade(self, when: When) -> Interval:
        """Change of ln of the gradient's norm per token of distance, over seeds."""
        found = [one[f"fade_per_token_{when}"] for one in self.trainings]
        return mean_interval([one for one in found if one is not None], "seed")

    def norms(self) -> dict[float, Interval | None]:
        """After training, by distance, 1, 2, ...: geometric means; None where one is 0."""
        columns = zip(*(one.gradient_norms_after for one in self.trainings), strict=False)
        return {place: _geometric(values) for place, values in enumerate(columns, start=1)}


def trained_models(studies: object) -> list[TrainedModel]:
    by_model: dict[str, list[TrainedGradients]] = {}
    for one in findings_of(TrainedGradients, studies):
        by_model.setdefault(one.model, []).append(one)
    return [TrainedModel(model=name, trainings=tuple(some)) for name, some in by_model.items()]


def _geometric(values: Sequence[float]) -> Interval | None:
    if min(values) <= 0:
        return None
    found = mean_interval([log(one) for one in values], "seed")
    value, low, high = (
        exp(one) if abs(one) < 300 else nan for one in (found.value, found.low, found.high)
    )
    return Interval(value=value, low=low, high=high, units=found.units)
