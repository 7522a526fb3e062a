"""Energy per call and per token, by problem and backend, relative to the baseline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log
from typing import Any

from ...harness.stats.intervals import Interval
from ..data.row_groups import Group, Row, axis_text, groups
from ..data.run_meta import Meta, caption
from ..elements import Block, Table, Text, note
from ..formatting import count_text, number_text, plural, ratio_range_text
from ..ratio import Ratio
from . import Subject
from .utilization import half_width, missing, observed, windows

TITLE = "Energy"
ORDER = 47
NEEDS = ("windows",)
MOST_TABLES = 8
PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


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


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = energy_costs(rows, meta)
    if not found:
        why = (
            "; ".join(reasons(rows))
            or "no case has windows; a scenario requests them with measure: [latency, memory,"
            " energy]"
        )
        return Subject(lacking=f"No energy was measured: {why}.")
    return Subject(blocks=tuple(_blocks(found, rows, meta)))


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


def _blocks(
    found: Sequence[tuple[Group, list[EnergyCost]]], rows: Sequence[Row], meta: Meta
) -> Iterator[Block]:
    yield note(
        "Energy of the whole board during windows of the steady loop, over the calls in them; a"
        " token is one position of one sequence. Intervals are over windows; a single window has"
        " none. Ratios are to the scenario's baseline, or to the first backend if the baseline has"
        " no energy."
    )
    by_case = {(cost.row["run"], cost.row["case"]): cost for _, costs in found for cost in costs}
    over_n = groups([cost.row for cost in by_case.values()], "seq_len")
    for group in over_n[:MOST_TABLES]:
        costs = [by_case[row["run"], row["case"]] for row in group.rows]
        yield from _finding(group, costs)
        yield _table(group, costs, meta)
    if left := over_n[MOST_TABLES:]:
        names = "; ".join(group.label for group in left)
        yield note(f"{plural(len(left), 'more problem')} not shown: {names}.")
    if lacking := reasons(rows):
        yield note(f"Cases with windows and no energy: {'; '.join(lacking)}.")


def _finding(group: Group, costs: list[EnergyCost]) -> Iterator[Block]:
    """The largest clear difference from the baseline at the longest N."""
    longest = max(cost.row["seq_len"] for cost in costs)
    here = [cost for cost in costs if cost.row["seq_len"] == longest]
    clear = [(cost.row, cost.ratio) for cost in here if cost.ratio and cost.ratio.clear]
    baseline = next((cost.row["backend"] for cost in here if cost.is_baseline), "")
    if not clear or not baseline:
        return
    row, ratio = max(clear, key=lambda pair: max(pair[1].value, 1 / pair[1].value))
    times = number_text(ratio.value)
    finding = (
        f"a call of {row['backend']} takes {times} times the energy of one of"
        f" {baseline}{ratio_range_text(ratio.low, ratio.high)}"
    )
    yield Text(text=f"{group.prefixed(finding)} at {axis_text('seq_len', longest)}.")


def _table(group: Group, costs: list[EnergyCost], meta: Meta) -> Table:
    rows = tuple(
        (
            count_text(cost.row["seq_len"]),
            cost.row["backend"],
            joules_text(cost.per_call_j),
            joules_text(cost.per_token_j),
            "1" if cost.is_baseline else _ratio_text(cost),
            str(cost.per_call_j.units),
        )
        for cost in sorted(costs, key=lambda cost: cost.row["seq_len"])
    )
    return Table(
        title=f"Energy · {caption(group.problem, meta)}",
        columns=("N", "backend", "per call", "per token", "ratio to the baseline", "windows"),
        rows=rows,
        folded=True,
    )


def _ratio_text(cost: EnergyCost) -> str:
    if cost.ratio is None:
        return ""
    return number_text(cost.ratio.value) + ratio_range_text(cost.ratio.low, cost.ratio.high)


def joules_text(found: Interval) -> str:
    """A value with half the width of its interval and a fitting prefix: `3.21 ± 0.05 mJ`."""
    scale, prefix = next(
        ((scale, prefix) for scale, prefix in PREFIXES if found.value >= scale), PREFIXES[-1]
    )
    half = half_width(found)
    width = "" if half is None else f" ± {number_text(half / scale)}"
    return f"{number_text(found.value / scale)}{width} {prefix}J"
