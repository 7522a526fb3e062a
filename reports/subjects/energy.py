"""Energy per call and per token, by problem and backend, relative to the baseline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...harness.stats.intervals import Interval
from ..data.peaks import share_of
from ..data.row_groups import Group, Row, axis_text, case_key, groups
from ..data.run_meta import Meta, caption
from ..elements import Block, Text, note, table_of
from ..formatting import plural
from ..judging.pair import energy_ratio
from ..judging.ratio import Ratio
from ..quantity import Quantity
from ..words import CONFIRMED
from . import Subject
from ._windows import missing, observed, windows

TITLE = "Energy"
SECTION = "more"
ORDER = 47
MOST_TABLES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyCost:
    """The energy of one case.

    `ratio`: to the baseline on the same problem; None for the baseline itself.
    """

    row: Row
    per_call_j: Interval
    ratio: Ratio | None
    is_baseline: bool

    @property
    def per_token_j(self) -> Interval:
        return share_of(self.per_call_j, self.row["batch"] * self.row["seq_len"])


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = energy_costs(rows, meta)
    lacking = [row for row in rows if windows(row) and observed(row, "energy_j") is None]
    why = "; ".join(reason for reason, names in missing(lacking).items() if "energy_j" in names)
    if not found:
        usual = (
            "no case has windows; a scenario requests them with measure: [latency, memory, energy]"
        )
        return Subject(lacking=f"No energy was measured: {why or usual}.")
    rest = (note(f"Cases with windows and no energy: {why}."),) if why else ()
    return Subject(blocks=(*_blocks(found, meta), *rest))


def energy_costs(rows: Sequence[Row], meta: Meta) -> list[tuple[Group, list[EnergyCost]]]:
    """Every problem on which some backend's energy was measured."""
    found = [(group, _costs(group, meta[group.problem["run"]])) for group in groups(rows, None)]
    return [(group, costs) for group, costs in found if costs]


def _costs(group: Group, run: Mapping[str, Any]) -> list[EnergyCost]:
    """To the scenario's baseline, or to the first backend if that has no energy."""
    known = [(row, found) for row in group.rows if (found := observed(row, "energy_j")) is not None]
    by_backend = {row["backend"]: row for row, _ in known}
    named = run["scenario"].get("baseline")
    is_known = isinstance(named, str) and named in by_backend
    baseline = named if is_known else next(iter(by_backend), "")
    return [
        EnergyCost(
            row=row,
            per_call_j=found,
            ratio=None if row["backend"] == baseline else energy_ratio(row, by_backend[baseline]),
            is_baseline=row["backend"] == baseline,
        )
        for row, found in known
    ]


def _blocks(found: Sequence[tuple[Group, list[EnergyCost]]], meta: Meta) -> Iterator[Block]:
    yield note(
        "Energy of the whole board during windows of the steady loop, over the calls in them; a"
        " token is one position of one sequence. Intervals are over windows; a single window has"
        " none. Ratios are to the scenario's baseline, or to the first backend if the baseline has"
        " no energy."
    )
    by_case = {case_key(cost.row): cost for _, costs in found for cost in costs}
    over_n = groups([cost.row for cost in by_case.values()], "seq_len")
    for group in over_n[:MOST_TABLES]:
        costs = [by_case[case_key(row)] for row in group.rows]
        yield from _finding(group, costs)
        yield table_of(
            f"Energy · {caption(group.problem, meta)}",
            sorted(costs, key=lambda cost: cost.row["seq_len"]),
            {
                "N": lambda cost: Quantity(cost.row["seq_len"], "count"),
                "backend": lambda cost: cost.row["backend"],
                "per call": lambda cost: Quantity.of(cost.per_call_j, "j"),
                "per token": lambda cost: Quantity.of(cost.per_token_j, "j"),
                "ratio to the baseline": lambda cost: 1 if cost.is_baseline else _of(cost.ratio),
                "windows": lambda cost: cost.per_call_j.units,
            },
            case=lambda cost: case_key(cost.row),
            folded=True,
        )
    if left := over_n[MOST_TABLES:]:
        names = "; ".join(group.label for group in left)
        yield note(f"{plural(len(left), 'more problem')} not shown: {names}.")


def _of(ratio: Ratio | None) -> Quantity | None:
    return Quantity(ratio.value, "ratio", ratio.low, ratio.high) if ratio else None


def _finding(group: Group, costs: list[EnergyCost]) -> Iterator[Block]:
    """The largest clear difference from the baseline at the longest N."""
    longest = max(cost.row["seq_len"] for cost in costs)
    here = [cost for cost in costs if cost.row["seq_len"] == longest]
    clear = [(cost.row, cost.ratio) for cost in here if cost.ratio and cost.ratio.mark == CONFIRMED]
    baseline = next((cost.row["backend"] for cost in here if cost.is_baseline), "")
    if clear and baseline:
        row, ratio = max(clear, key=lambda pair: max(pair[1].value, 1 / pair[1].value))
        times = Quantity(ratio.value, "times", ratio.low, ratio.high)
        finding = f"a call of {row['backend']} takes {times.number} the energy of one of {baseline}"
        at = axis_text("seq_len", longest)
        yield Text(text=f"{group.prefixed(finding)} ({times.bounds}) at {at}.")
