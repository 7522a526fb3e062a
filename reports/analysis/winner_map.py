"""Who wins where: every problem as a cell of a map over N and one more axis, with the margin, and
what failed there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..data.row_groups import AXES, Row, groups, label
from .ratio import Ratio
from .speed import race

Verdict = Literal["won", "undecided", "alone", "nobody"]
USUAL_AXIS = "heads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One problem. `map` says which of several maps it belongs to, by what differs beside the two
    axes; "" where there is one map.

    Among exact backends. won: `winner` is faster than every other by more than noise. undecided: it
    is not, and `tied` are those that it is not told apart from, itself first. alone: nobody else
    has a latency. nobody: no one has. `margin` is how many times as long the runner-up takes.
    `failed`: by status, the backends that ended so.
    """

    map: str
    problem: dict[str, Any]
    seq_len: int
    axis: str
    value: Any
    verdict: Verdict
    winner: str | None
    tied: tuple[str, ...]
    runner_up: str | None
    margin: Ratio | None
    failed: dict[str, tuple[str, ...]]


def winner_map(rows: Sequence[Row]) -> list[Cell]:
    """One cell per problem, in the order of the plan."""
    found = groups(rows, None)
    problems = [group.problem for group in found]
    axis = second_axis(problems)
    rest = [
        other
        for other in AXES
        if other not in ("seq_len", axis) and len({problem[other] for problem in problems}) > 1
    ]
    return [_cell(group.rows, group.problem, axis, label(group.problem, rest)) for group in found]


def second_axis(problems: Sequence[dict[str, Any]]) -> str:
    """The axis, beside N, that takes the most values; heads where two take as many, or none
    varies.
    """
    counts = {
        axis: len({problem[axis] for problem in problems})
        for axis in AXES
        if axis not in ("run", "seq_len")
    }
    most = max(counts.values(), default=0)
    return (
        USUAL_AXIS if counts.get(USUAL_AXIS) == most else max(counts, key=lambda axis: counts[axis])
    )


def _cell(rows: Sequence[Row], problem: dict[str, Any], axis: str, map_label: str) -> Cell:
    found = race(list(rows))
    failed: dict[str, list[str]] = {}
    for row in rows:
        if row["status"] != "ok":
            failed.setdefault(row["status"], []).append(row["backend"])
    winner, runner_up = ([row["backend"] for row in found.ranking[:2]] + [None, None])[:2]
    unclear = [
        row["backend"]
        for row, margin in zip(found.ranking[1:], found.margins, strict=True)
        if not margin.clear
    ]
    verdict: Verdict = (
        "nobody"
        if winner is None
        else "alone"
        if not found.margins
        else "won"
        if found.clear
        else "undecided"
    )
    return Cell(
        map=map_label,
        problem=problem,
        seq_len=problem["seq_len"],
        axis=axis,
        value=problem[axis],
        verdict=verdict,
        winner=winner,
        tied=(winner, *unclear) if winner is not None and unclear else (),
        runner_up=runner_up,
        margin=found.margins[0] if found.margins else None,
        failed={status: tuple(backends) for status, backends in failed.items()},
    )
