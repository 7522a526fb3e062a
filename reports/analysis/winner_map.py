"""The winner of every problem, as cells of a map over N and one more axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..data.row_groups import AXES, Row, groups, label
from ..ratio import Ratio
from .speed import race

CellKind = Literal["won", "undecided", "alone", "nobody"]
USUAL_AXIS = "heads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One problem of the winner map.

    `map` distinguishes several maps, by the axes that vary besides the two; "" if there is one map.
    `kind` is about exact backends. won: `winner` is clearly faster than every other. undecided: it
    is not; `tied` are the winner and those that it cannot be told apart from. alone: no other has a
    latency. nobody: none has. `margin`: the runner-up's time over the winner's. `failed`: backends
    by status.
    """

    map: str
    problem: dict[str, Any]
    seq_len: int
    axis: str
    value: Any
    kind: CellKind
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
    others = [
        other
        for other in AXES
        if other not in ("seq_len", axis) and len({problem[other] for problem in problems}) > 1
    ]
    return [_cell(group.rows, group.problem, axis, label(group.problem, others)) for group in found]


def second_axis(problems: Sequence[dict[str, Any]]) -> str:
    """The axis besides N with the most values; heads in a tie."""
    axes = (axis for axis in AXES if axis not in ("run", "seq_len"))
    counts = {axis: len({problem[axis] for problem in problems}) for axis in axes}
    most = max(counts, key=lambda axis: counts[axis])
    return USUAL_AXIS if counts[USUAL_AXIS] == counts[most] else most


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
    kind: CellKind = "won" if found.clear else "undecided" if found.margins else "alone"
    return Cell(
        map=map_label,
        problem=problem,
        seq_len=problem["seq_len"],
        axis=axis,
        value=problem[axis],
        kind=kind if winner is not None else "nobody",
        winner=winner,
        tied=(winner, *unclear) if winner is not None and unclear else (),
        runner_up=runner_up,
        margin=found.margins[0] if found.margins else None,
        failed={status: tuple(backends) for status, backends in failed.items()},
    )
