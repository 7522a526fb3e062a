"""How many times as fast each backend is as the baseline, on the same problem."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ..data.exactness import is_exact, note
from ..data.row_groups import Group, Row, axis_text, backends
from ..formatting import list_text, number_text
from .ratio import Ratio, time_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedUp:
    """A row and the baseline's row on the same problem; `ratio` is the baseline's time over the
    row's, None where either has none.
    """

    row: Row
    base: Row
    ratio: Ratio | None


def baseline(run: Mapping[str, Any], rows: list[Row]) -> str | None:
    """The scenario's, or where it names none the first exact backend of its plan."""
    scenario = run["scenario"]
    named, planned = scenario.get("baseline"), scenario.get("backends")
    known = backends(rows)
    inexact = {row["backend"] for row in rows if not is_exact(row)}
    exact_first = sorted(
        [*(planned if isinstance(planned, list) else []), *known], key=lambda name: name in inexact
    )
    wanted = [named, *exact_first]
    return next((name for name in wanted if name in known), None)


def speed_ups(rows: list[Row], base: str) -> list[SpeedUp]:
    """For the rows of one group, problem by problem in their order; without the baseline's own."""
    by_n = {row["seq_len"]: row for row in rows if row["backend"] == base}
    return [
        SpeedUp(row=row, base=by_n[row["seq_len"]], ratio=time_ratio(by_n[row["seq_len"]], row))
        for row in rows
        if row["backend"] != base and row["seq_len"] in by_n
    ]


def finding(group: Group, base: str) -> str:
    """One sentence at the longest N that has a ratio: `at N = 8k, against fused: sdpa is 3.60 times
    as fast (3.56 to 3.64)`.
    """
    found = [one for one in speed_ups(group.rows, base) if one.ratio is not None]
    if not found:
        return f"nothing can be compared with {base}"
    n = max(one.row["seq_len"] for one in found)
    here = [one for one in found if one.row["seq_len"] == n]
    here.sort(key=lambda one: (not is_exact(one.row), -(one.ratio.value if one.ratio else 0)))
    return (
        f"at {axis_text('seq_len', n)}, against {base}: {list_text([_said(one) for one in here])}"
    )


def _said(one: SpeedUp) -> str:
    ratio = one.ratio
    if ratio is None:
        return ""
    what = f" ({note(one.row)})" if note(one.row) else ""
    between = (
        f" ({number_text(ratio.low)} to"
        f" {number_text(ratio.high)}{'' if ratio.paired else ', unpaired'})"
    )
    shown = between if isfinite(ratio.low) else " (no interval)"
    if isfinite(ratio.low) and not ratio.clear:
        return f"{one.row['backend']}{what} is not told apart{shown}"
    return f"{one.row['backend']}{what} is {number_text(ratio.value)} times as fast{shown}"
