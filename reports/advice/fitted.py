"""A time at a length that was not measured, from those that were; always marked as such."""

from collections.abc import Sequence
from typing import NamedTuple

from ...harness.stats import Interval
from ..analysis.growth import FEWEST_LENGTHS, growth, predict
from ..data.load import frame
from ..data.row_groups import records
from .asked import LENGTHS, Fields
from .stored import Stored


class Fitted(NamedTuple):
    """`time_ms` in ms of one call; None if there is none, and `words` say why."""

    time_ms: Interval | None
    words: str


def fitted_time(stored: Sequence[Stored], problem: Fields) -> Fitted:
    """By a + b N + c N^2 through the rows of the newest run that has enough lengths.

    Not beyond four times the longest measured length.
    """
    over = LENGTHS[0] if problem["seq_len"] == problem["kv_seq_len"] else LENGTHS[1]
    timed = [one for one in stored if one.row["status"] == "ok" and one.row.get("block_ms")]
    for run in dict.fromkeys(id(one.run) for one in timed):
        mine = [one for one in timed if id(one.run) == run]
        if len(mine) < FEWEST_LENGTHS:
            continue
        cases = {one.row["case"] for one in mine}
        rows = [row for row in records(frame([mine[0].run])) if row["case"] in cases]
        found = growth(rows, mine[0].row["backend"], over)
        time_ms = predict(found, problem[over])
        if time_ms.reason:
            return Fitted(None, f"not measured, and {time_ms.reason}")
        if not found.describes:
            return Fitted(None, "not measured, and no formula describes the other lengths")
        words = f"fitted through N = {', '.join(f'{n:,}' for n in found.lengths)}"
        if problem[over] > found.lengths[-1]:
            words += ", beyond them"
        return Fitted(time_ms, words)
    return Fitted(None, "not measured")
