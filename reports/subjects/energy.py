"""Energy per call and per token, by problem and backend, relative to the baseline."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...harness.stats.intervals import Interval
from ..data.peaks import share_of
from ..data.row_groups import Group, Row, case_key, groups
from ..data.run_meta import Meta
from ..elements import Table, note, table_of
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
    " is one position of one sequence. Ratios are to the scenario's baseline, else to the first"
    " backend."
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
    """The line is of the longest problem."""
    every = energy_costs(rows, meta)
    lacking = [row for row in rows if windows(row) and observed(row, "energy_j") is None]
    why = "; ".join(reason for reason, names in missing(lacking).items() if "energy_j" in names)
    if not every:
        return Subject(lacking=f"No energy was measured: {why or USUAL}.")
    last = max(every, key=lambda pair: int(pair[0].problem["seq_len"]))
    lines = [(group.label, cost) for group, costs in every for cost in costs]
    notes = [note(f"Cases with windows and no energy: {why}.")] if why else []
    return Subject(lines=tuple(_finding(*last)), blocks=(note(WHAT), _table(lines), *notes))


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
        "backend": lambda line: line[1].row["backend"],
        "per call": lambda line: Quantity.of(line[1].per_call_j, "j"),
        "per token": lambda line: Quantity.of(line[1].per_token_j, "j"),
        "ratio to the baseline": lambda line: "1" if line[1].is_baseline else _of(line[1].ratio),
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


def _of(ratio: Ratio | None) -> str:
    return ratio.marked if ratio else ""


def _finding(group: Group, costs: Sequence[EnergyCost]) -> Iterator[str]:
    """The largest clear difference from the baseline."""
    clear = [(one.ratio, one) for one in costs if one.ratio and one.ratio.mark == CONFIRMED]
    baseline = next((one.row["backend"] for one in costs if one.is_baseline), "")
    if clear and baseline:
        ratio, most = max(clear, key=lambda pair: max(pair[0].value, 1 / pair[0].value))
        times = Quantity(ratio.value, "times", ratio.low, ratio.high)
        yield (
            f"{most.row['backend']} takes {times.number} the energy of {baseline} per call"
            f" ({times.bounds}) at {group.at}."
        )
