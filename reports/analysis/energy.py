"""Energy per call and per token, with intervals over windows, and relative to the baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log
from typing import Any

from ...harness.stats.intervals import Interval
from ..data.row_groups import Group, Row, groups
from ..data.run_meta import Meta
from ..ratio import Ratio
from .utilization import missing, observed, windows


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyCost:
    """The energy of one case.

    `ratio`: to the baseline on the same problem; None for the baseline itself, and if an energy is
    0.
    """

    row: Row
    per_call_j: Interval
    per_token_j: Interval
    ratio: Ratio | None
    is_baseline: bool


def energy_costs(rows: Sequence[Row], meta: Meta) -> list[tuple[Group, list[EnergyCost]]]:
    """Every problem on which some backend's energy was measured."""
    found = [(group, _costs(group, meta[group.problem["run"]])) for group in groups(rows, None)]
    return [(group, costs) for group, costs in found if costs]


def reasons(rows: Sequence[Row]) -> list[str]:
    """Why cases with windows have no energy."""
    lacking = [row for row in rows if windows(row) and observed(row, "energy") is None]
    return [reason for reason, names in missing(lacking).items() if "energy_j" in names]


def _costs(group: Group, run: Mapping[str, Any]) -> list[EnergyCost]:
    known = [(row, found) for row in group.rows if (found := observed(row, "energy")) is not None]
    by_backend = {row["backend"]: found for row, found in known}
    named = run["scenario"].get("baseline")
    is_known = isinstance(named, str) and named in by_backend
    baseline = named if is_known else next(iter(by_backend), "")
    return [
        EnergyCost(
            row=row,
            per_call_j=found,
            per_token_j=_per_token(found, row["batch"] * row["seq_len"]),
            ratio=None if row["backend"] == baseline else energy_ratio(found, by_backend[baseline]),
            is_baseline=row["backend"] == baseline,
        )
        for row, found in known
    ]


def energy_ratio(numerator: Interval, denominator: Interval) -> Ratio | None:
    """A ratio of two energies; None unless both means are above 0.

    Windows of two backends are not paired: their errors add in quadrature on the log scale.
    """
    if not (numerator.value > 0 and denominator.value > 0):
        return None
    value = numerator.value / denominator.value
    if not (numerator.low > 0 and denominator.low > 0):
        nan = float("nan")
        return Ratio(value=value, low=nan, high=nan, paired=False, note="too few windows")
    down = hypot(log(numerator.value / numerator.low), log(denominator.high / denominator.value))
    up = hypot(log(numerator.high / numerator.value), log(denominator.value / denominator.low))
    return Ratio(value=value, low=value / exp(down), high=value * exp(up), paired=False, note="")


def _per_token(found: Interval, tokens: int) -> Interval:
    return replace(
        found, value=found.value / tokens, low=found.low / tokens, high=found.high / tokens
    )
