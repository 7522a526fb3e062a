"""How many times as fast each backend is as the baseline, on the same problem."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ..data.exactness import exactness_note, is_exact
from ..data.row_groups import Group, Row, axis_text, backends
from ..formatting import list_text, number_text
from ..ratio import Ratio, time_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedUp:
    """A row and the baseline's row on the same problem.

    `ratio`: the baseline's time over the row's, None if either has none.
    """

    row: Row
    base: Row
    ratio: Ratio | None


def baseline(run: Mapping[str, Any], rows: Sequence[Row]) -> str | None:
    """The scenario's baseline, else the first exact backend of its plan."""
    scenario = run["scenario"]
    named, planned = scenario.get("baseline"), scenario.get("backends")
    known = backends(rows)
    inexact = {row["backend"] for row in rows if not is_exact(row)}
    exact_first = sorted(
        [*(planned if isinstance(planned, list) else []), *known], key=lambda name: name in inexact
    )
    return next((name for name in [named, *exact_first] if name in known), None)


def speed_ups(rows: list[Row], base: str) -> list[SpeedUp]:
    """One per row of a group that is not the baseline's own, in order."""
    by_n = {row["seq_len"]: row for row in rows if row["backend"] == base}
    return [
        SpeedUp(row=row, base=by_n[row["seq_len"]], ratio=time_ratio(by_n[row["seq_len"]], row))
        for row in rows
        if row["backend"] != base and row["seq_len"] in by_n
    ]


def finding(group: Group, base: str) -> str:
    """One sentence at the longest N that has a ratio.

    `at N = 8k, against fused: sdpa is 3.60 times as fast (3.56 to 3.64)`.
    """
    found = [(one, one.ratio) for one in speed_ups(group.rows, base) if one.ratio is not None]
    if not found:
        return f"nothing can be compared with {base}"
    n = max(one.row["seq_len"] for one, _ in found)
    here = [(one.row, ratio) for one, ratio in found if one.row["seq_len"] == n]
    here.sort(key=lambda pair: (not is_exact(pair[0]), -pair[1].value))
    texts = [_text(row, ratio) for row, ratio in here]
    return f"at {axis_text('seq_len', n)}, against {base}: {list_text(texts)}"


def _text(row: Row, ratio: Ratio) -> str:
    note = exactness_note(row)
    name = f"{row['backend']} ({note})" if note else row["backend"]
    if isfinite(ratio.low) and not ratio.clear:
        return f"{name} cannot be told apart ({ratio.doubt})"
    return f"{name} is {number_text(ratio.value)} times as fast ({ratio.bounds})"
