"""Cases over their bases on otherwise equal problems: the pairs, their table, and at
which values of a size a ratio is beyond an edge.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import NamedTuple

from ..data.processor_time import time_of
from ..data.row_groups import Row, case_key, distinguishing_axes, is_timed, label, problem
from ..elements import Table, table_of
from ..formatting import length_text, list_text
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


# ---- where a ratio is beyond an edge -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """Where ratios of times, by N in order, are clearly below an edge, or above it.

    `ignored`: lengths that decide nothing. At lengths that are neither in `holds_at` nor in
    `fails_at` nobody can tell.
    """

    ratios: Mapping[int, Ratio]
    edge: float = 1
    above: bool = False
    ignored: Collection[int] = ()

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(self.ratios)

    @property
    def holds_at(self) -> tuple[int, ...]:
        return self._beyond(above=self.above)

    @property
    def fails_at(self) -> tuple[int, ...]:
        return self._beyond(above=not self.above)

    def _beyond(self, *, above: bool) -> tuple[int, ...]:
        return tuple(
            n
            for n, ratio in self.ratios.items()
            if (ratio.low > self.edge if above else ratio.high < self.edge)
            if n not in self.ignored
        )

    @property
    def start(self) -> int | None:
        """The shortest N at and beyond which it holds; None if it does not at the longest."""
        return holds_from(self.ratios, lambda n: n in self.holds_at)

    def text(self, fails: str) -> str:
        """`at N = 2 048 and longer (slower up to 1 024)`, `only at N = 1 024`, `at no N up to 4"
        " 096`."""
        if self.start is None:
            held = list_text([*map(length_text, self.holds_at)])
            return (
                f"only at N = {held}" if held else f"at no N up to {length_text(self.lengths[-1])}"
            )
        where = start_text(self.start, self.lengths)
        if not self.fails_at:
            return where
        until = "up to" if self.fails_at == self.lengths[: len(self.fails_at)] else "at"
        return f"{where} ({fails} {until} {length_text(self.fails_at[-1])})"


def holds_from(lengths: Iterable[int], holds: Callable[[int], bool]) -> int | None:
    """The shortest length at and beyond which it holds; None if not at the longest."""
    start: int | None = None
    for n in sorted(lengths, reverse=True):
        if not holds(n):
            break
        start = n
    return start


def start_text(start: int, lengths: Sequence[int]) -> str:
    """`at N = 2 048 and longer`; nothing is known beyond the longest: `at N = 8 192, the"
    " longest`."""
    first, last = min(lengths), max(lengths)
    if start == last:
        return f"at N = {length_text(start)}{', the longest' if first != last else ''}"
    if start == first:
        return f"at every N from {length_text(first)} to {length_text(last)}"
    return f"at N = {length_text(start)} and longer"
