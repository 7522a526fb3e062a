"""What a call and a token cost in energy, with intervals over windows, and beside the baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot, log
from typing import Any

from ...harness.stats import Interval
from ..data.run_meta import Meta
from ..data.row_groups import Group, Row, groups
from .ratio import Ratio
from .utilization import missing, seen, windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one case. `ratio` to the baseline on the same problem: None for the baseline itself, and
    where an energy is 0.
    """

    row: Row
    per_call_j: Interval
    per_token_j: Interval
    ratio: Ratio | None
    is_baseline: bool


def costs(rows: Sequence[Row], meta: Meta) -> list[tuple[Group, list[Cost]]]:
    """Every problem on which some backend's energy was measured."""
    found = [(group, _costs(group, meta[group.problem["run"]])) for group in groups(rows, None)]
    return [(group, members) for group, members in found if members]


def reasons(rows: Sequence[Row]) -> list[str]:
    """Why watched cases have no energy."""
    watched = [row for row in rows if windows(row) and seen(row, "energy") is None]
    return [reason for reason, names in missing(watched).items() if "energy_j" in names]


def _costs(group: Group, run: Mapping[str, Any]) -> list[Cost]:
    known = [(row, found) for row in group.rows if (found := seen(row, "energy")) is not None]
    by_backend = {row["backend"]: found for row, found in known}
    named = run["scenario"].get("baseline")
    baseline = (
        named if isinstance(named, str) and named in by_backend else next(iter(by_backend), None)
    )
    return [
        Cost(
            row=row,
            per_call_j=found,
            per_token_j=_over(found, row["batch"] * row["seq_len"]),
            ratio=energy_ratio(found, by_backend[baseline])
            if baseline is not None and row["backend"] != baseline
            else None,
            is_baseline=row["backend"] == baseline,
        )
        for row, found in known
    ]


def energy_ratio(numerator: Interval, denominator: Interval) -> Ratio | None:
    """None where a mean is not above 0. Windows of two backends are not paired: their errors add in
    squares on the log scale.
    """
    if not (numerator.value > 0 and denominator.value > 0):
        return None
    value = numerator.value / denominator.value
    if not (numerator.low > 0 and denominator.low > 0):
        return Ratio(
            value=value, low=float("nan"), high=float("nan"), paired=False, note="too few windows"
        )
    down = hypot(log(numerator.value / numerator.low), log(denominator.high / denominator.value))
    up = hypot(log(numerator.high / numerator.value), log(denominator.value / denominator.low))
    return Ratio(value=value, low=value / exp(down), high=value * exp(up), paired=False, note="")


def _over(found: Interval, tokens: int) -> Interval:
    return Interval(
        value=found.value / tokens,
        low=found.low / tokens,
        high=found.high / tokens,
        units=found.units,
        reason=found.reason,
    )
