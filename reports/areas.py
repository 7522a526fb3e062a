"""Memory as areas drawn to scale: bytes of each backend at a few lengths, beside a budget."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt, sqrt
from typing import NamedTuple

from .formatting import size_text


class Area(NamedTuple):
    """Its sides, those of a square frame being 1, what stands below, and how it looks."""

    wide: float
    tall: float
    text: str
    look: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaRow:
    """Bytes of a backend over N as areas: so many `squares`, or a strip if they are none.

    `keeps`: what it has in memory at once. `ends`: the longest N that fits. `known`: bytes measured
    at N. `need`: the formula of all others: constant, linear and quadratic times the last number,
    from `least_n`.
    """

    backend: str
    keeps: str
    squares: int
    ends: str
    known: Mapping[int, int]
    need: tuple[int, int, int, int] | None = None
    least_n: int = 1

    def at(self, n: int) -> float | None:
        """The bytes; None if they are not known."""
        if n in self.known or self.need is None or n < self.least_n:
            return self.known.get(n)
        constant, linear, quadratic, of = self.need
        return (constant + linear * n + quadratic * n * n) / of

    @property
    def grid(self) -> tuple[int, int]:
        """Columns and rows of its squares; the frame has the shape of all together."""
        count = max(self.squares, 1)
        rows = next(one for one in range(isqrt(count), 0, -1) if count % one == 0)
        return count // rows, rows

    @property
    def frame(self) -> float:
        """How wide the frame is; it is as many times less tall than a square one."""
        columns, rows = self.grid
        return sqrt(columns / rows)

    def area(self, n: int, budget: int) -> Area:
        if (size := self.at(n)) is None:
            return Area(0, 0, "not run", "")
        ratio, side = size / budget, sqrt(size / budget)
        wide, tall = (side * self.frame, side / self.frame) if self.squares else (1, ratio)
        looks = ("" if n in self.known else "calculated", "beyond" if ratio > 1 else "")
        return Area(wide, tall, size_text(size), " ".join(filter(None, looks)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Areas:
    """Rows of areas to one scale, at a few `lengths`: halves and doubles of `longest`, that of the
    run. `budgets`: those that the reader can choose besides the run's own.
    """

    title: str
    budget: int
    budgets: tuple[int, ...]
    longest: int
    lengths: tuple[int, ...]
    rows: tuple[AreaRow, ...]

    @property
    def columns(self) -> float:
        """How many square frames wide all columns are together."""
        return sum(
            max(max(one.frame, one.area(n, self.budget).wide) for one in self.rows)
            for n in self.lengths
        )

    @property
    def data(self) -> str:
        """What the page's script draws it from for another budget, in whole numbers."""
        names = ("squares", "frame", "known", "need", "least_n")
        rows = [{name: getattr(one, name) for name in names} for one in self.rows]
        own = {"budget": self.budget, "budgets": self.budgets, "longest": self.longest}
        return json.dumps(own | {"rows": rows}, separators=(",", ":"))
