"""Gradients over distance after training: the findings of trained_gradients, model by model."""

from dataclasses import dataclass
from math import exp, log, nan

from ...harness.learning.findings import TrainedGradients
from ...harness.rows.findings import findings_of
from ...harness.stats.intervals import Interval
from .trained import Trainings, When, by, over_seeds


@dataclass(frozen=True, kw_only=True)
class TrainedModel(Trainings[TrainedGradients]):
    model: str

    def fade(self, when: When) -> Interval:
        """Change of ln of the gradient's norm per token of distance."""
        return self.mean(lambda one: one[f"fade_per_token_{when}"])

    def norms(self) -> dict[float, Interval | None]:
        """After training, by distance, 1, 2, ...: geometric means; None where one is 0."""
        columns = zip(*(one.gradient_norms_after for one in self.trainings), strict=False)
        return {place: _geometric(values) for place, values in enumerate(columns, start=1)}


def trained_models(studies: object) -> list[TrainedModel]:
    by_model = by(findings_of(TrainedGradients, studies), lambda one: one.model)
    return [TrainedModel(model=name, trainings=some) for name, some in by_model.items()]


def _geometric(values: tuple[float, ...]) -> Interval | None:
    if min(values) <= 0:
        return None
    found = over_seeds(map(log, values))
    value, low, high = (
        exp(one) if abs(one) < 300 else nan for one in (found.value, found.low, found.high)
    )
    return Interval(value=value, low=low, high=high, units=found.units)
