"""A time at a length that was not measured, from those that were; always marked as such."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...harness.stats.intervals import Interval
from ..data.load import frame
from ..data.read import Run
from ..data.row_groups import records
from ..growth_fit import FEWEST_LENGTHS, Growth, growth, predict
from .asked import Fields, growing, length
from .stored import Stored


class Fitted(NamedTuple):
    """`time_ms` in ms of one call; None if there is none, and `words` say why.

    `run`: whose rows it is fitted through. `disturbed`: other work competed for the cores in most
    blocks of one of them.
    """

    time_ms: Interval | None
    words: str
    run: Run | None = None
    disturbed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How the time of a backend grows over the lengths of one problem; None if nothing says it.

    `run`: whose rows say it.
    """

    growth: Growth | None
    run: Run | None = None

    def at(self, n: int) -> Fitted:
        """Not beyond four times the longest measured length."""
        if self.growth is None:
            return Fitted(None, "not measured")
        time_ms = predict(self.growth, n)
        if time_ms.reason:
            return Fitted(None, f"not measured, and {time_ms.reason}")
        if not self.growth.describes:
            return Fitted(None, "not measured, and no formula describes the other lengths")
        words = f"fitted through N = {', '.join(f'{one:,}' for one in self.growth.lengths)}"
        if n > self.growth.lengths[-1]:
            words += ", beyond them"
        return Fitted(time_ms, words, self.run, self.growth.disturbed)


def fit(stored: Sequence[Stored], problem: Fields) -> Fit:
    """By a + b N + c N^2 through the rows of the newest run that has enough lengths."""
    over = growing(problem)[0]
    timed = [one for one in stored if one.row["status"] == "ok" and one.row.get("block_ms")]
    for run in dict.fromkeys(id(one.run) for one in timed):
        mine = [one for one in timed if id(one.run) == run]
        if len(mine) < FEWEST_LENGTHS:
            continue
        cases = {one.row["case"] for one in mine}
        rows = [row for row in records(frame([mine[0].run])) if row["case"] in cases]
        return Fit(growth=growth(rows, mine[0].row["backend"], over), run=mine[0].run)
    return Fit(growth=None)


def fitted_time(stored: Sequence[Stored], problem: Fields) -> Fitted:
    """The time at the problem's length by the fit through others."""
    return fit(stored, problem).at(length(problem))
