"""Energy per call and per token, by problem and backend, relative to the baseline."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...harness.stats.intervals import Interval
from ..data.peaks import share_of
from ..data.row_groups import Group, Row, axis_text, case_key, groups
from ..data.run_meta import Meta
from ..elements import Block, Table, Text, note, table_of
from ..formatting import capital
from ..judging.pair import energy_ratio
from ..judging.ratio import Ratio
from ..quantity import Cell, Quantity
from ..words import CONFIRMED
from . import Subject
from ._readings import missing, observed, windows

TITLE = "Energy"
SECTION = "device"
ORDER = 1
MOST_ROWS = 200
USUAL = "no case has windows; a scenario requests them with measure: [latency, memory, energy]"
WHAT = (
    "Energy of the whole board during windows of the steady loop, over the calls in them; a token"
    " is one position of one sequence. Intervals are over windows; a single window has none. Ratios"
    " are to the scenario's baseline, or to the first backend if the baseline has no energy."
)


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
    """The line is of the longest problem; the details have the others'."""
    found = [cost for _, costs in energy_costs(rows, meta) for cost in costs]
    lacking = [row for row in rows if windows(row) and observed(row, "energy_j") is None]
    why = "; ".join(reason for reason, names in missing(lacking).items() if "energy_j" in names)
    if not found:
        return Subject(lacking=f"No energy was measured: {why or USUAL}.")
    by_case = {case_key(cost.row): cost for cost in found}
    over_n = groups([cost.row for cost in found], "seq_len")
    texts = [text for group in over_n if (text := _finding(group, by_case))]
    blocks: tuple[Block, ...] = (
        note(WHAT),
        *(Text(text=text) for text in texts[:-1]),
        _table([(group.label, by_case[case_key(row)]) for group in over_n for row in group.rows]),
        *([note(f"Cases with windows and no energy: {why}.")] if why else []),
    )
    return Subject(lines=tuple(texts[-1:]), blocks=blocks)


def energy_costs(rows: Sequence[Row], meta: Meta) -> list[tuple[Group, list[EnergyCost]]]:
    """Every problem on which some backend's energy was measured."""
    found = [(group, _costs(group, meta[group.problem["run"]])) for group in groups(rows, None)]
    return [(group, costs) for group, costs in found if costs]


def _costs(group: Group, run: Mapping[str, Any]) -> list[EnergyCost]:
    """To the scenario's baseline, or to the first backend if that has no energy."""
    known = [(row, found) for row in group.rows if (found := observed(row, "energy_j")) is not None]
    named = [row for row, _ in known if row["backend"] == run["scenario"].get("baseline")]
    base = next(iter([*named, *(row for row, _ in known)]), None)
    return [
        EnergyCost(
            row=row,
            per_call_j=found,
            ratio=energy_ratio(row, base) if base and base is not row else None,
            is_baseline=row is base,
        )
        for row, found in known
    ]


def _table(costs: Sequence[tuple[str, EnergyCost]]) -> Table:
    columns: dict[str, Callable[[tuple[str, EnergyCost]], Cell]] = {
        "problem": lambda line: line[0],
        "N": lambda line: Quantity(line[1].row["seq_len"], "count"),
        "backend": lambda line: line[1].row["backend"],
        "per call": lambda line: Quantity.of(line[1].per_call_j, "j"),
        "per token": lambda line: Quantity.of(line[1].per_token_j, "j"),
        "ratio to the baseline": lambda line: 1 if line[1].is_baseline else _of(line[1].ratio),
        "windows": lambda line: line[1].per_call_j.units,
    }
    return table_of(
        "Energy",
        costs,
        columns,
        case=lambda line: case_key(line[1].row),
        optional=("problem",),
        folded=True,
        most=MOST_ROWS,
    )


def _of(ratio: Ratio | None) -> Quantity | None:
    return Quantity(ratio.value, "ratio", ratio.low, ratio.high) if ratio else None


def _finding(group: Group, costs: Mapping[str, EnergyCost]) -> str:
    """The largest clear difference from the baseline at the longest N."""
    longest, here = max(group.by_length.items())
    found = [costs[case_key(row)] for row in here]
    clear = [(one.ratio, one) for one in found if one.ratio and one.ratio.mark == CONFIRMED]
    baseline = next((one.row["backend"] for one in found if one.is_baseline), "")
    if not clear or not baseline:
        return ""
    ratio, most = max(clear, key=lambda pair: max(pair[0].value, 1 / pair[0].value))
    times = Quantity(ratio.value, "times", ratio.low, ratio.high)
    text = f"a call of {most.row['backend']} takes {times.number} the energy of one of {baseline}"
    return f"{capital(group.prefixed(text))} ({times.bounds}) at {axis_text('seq_len', longest)}."
