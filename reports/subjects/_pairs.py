"""Cases over their bases on otherwise equal problems: the pairs, and their table."""

from collections.abc import Callable, Mapping, Sequence
from itertools import starmap
from typing import NamedTuple

from ..data.processor_time import time_of
from ..data.row_groups import Row, case_key, distinguishing_axes, is_timed, label, problem
from ..elements import Table, table_of
from ..judging.over import paired
from ..judging.ratio import Ratio, count_ratio
from ..quantity import Cell, Quantity

MOST_ROWS = 200


class Pair(NamedTuple):
    """A case and its base; `time`: of the case over that of the base."""

    row: Row
    base: Row
    time: Ratio

    def ratio(self, column: str) -> float:
        """Of a count; NaN without both."""
        return count_ratio(self.row.get(column), self.base.get(column))

    @property
    def backend(self) -> str:
        return str(self.row["backend"])


Cells = Mapping[str, Callable[[Pair], Cell]]


def pairs_of(rows: Sequence[Row], bases: Sequence[Row], on: Sequence[str]) -> list[Pair]:
    """Each timed case with the first timed base that equals it `on` these columns."""
    return [*starmap(Pair, paired([*filter(is_timed, rows)], [*filter(is_timed, bases)], on))]


def axes_of(found: Sequence[Pair], without: Sequence[str] = ()) -> list[str]:
    """Those that tell the problems of the cases apart."""
    return [axis for axis in distinguishing_axes([one.row for one in found]) if axis not in without]


def pair_table(
    title: str,
    found: Sequence[Pair],
    case: str,
    base: str,
    more: Cells,
    without: Sequence[str] = (),
) -> Table:
    """A row per pair. `case`, `base`: what the two are called. `more`: further cells, before the
    times. `without`: axes that those name.
    """
    axes = axes_of(found, without)

    def peak(row: Row) -> Cell:
        return "" if row.get("peak_bytes") is None else Quantity(row["peak_bytes"], "bytes")

    def other(one: Pair) -> str:
        return "" if one.backend == one.base["backend"] else str(one.base["backend"])

    peaks = (f"peak, {case}", f"peak, {base}")
    return table_of(
        title,
        found,
        {
            "problem": lambda one: label(problem(one.row), axes),
            "backend": lambda one: one.backend,
            **more,
            case: lambda one: time_of(one.row),
            base: lambda one: time_of(one.base),
            "by": other,
            f"over {base}": lambda one: one.time.marked,
            peaks[0]: lambda one: peak(one.row),
            peaks[1]: lambda one: peak(one.base),
        },
        case=lambda one: case_key(one.row),
        optional=("problem", "by", *peaks),
        most=MOST_ROWS,
    )
