"""Times of calls at any length: measured, or fitted through others and then marked as such."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from ...harness.files.printable import spaced
from ...harness.stats.intervals import Interval, latency_interval
from ..data.decode import Rate, traffic
from ..data.processor_time import (
    PROCESSOR_TIMES,
    in_most,
    is_known,
    processor_samples,
    typical_ms,
)
from ..data.read import Run
from ..data.run_meta import caches
from .asked import Asked, Fields, Implementation, growing, key_over, length
from .stored import Stored, StoredRows, alike_in_caches, is_warm

if TYPE_CHECKING:
    from ..growth_fit import Growth  # whose pandas and scipy take long to import

MISSING = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One implementation on one kind of layer: time of a call in ms, peak bytes, how it ended.

    `status`: ok, MISSING, or how its row ended, with the reason. `fitted`: the time comes from
    other lengths, in words; "" if this very length was measured. `run`: that the time is from.
    `disturbed`: other work competed for the cores in most blocks that it is from.
    """

    asked: Asked
    implementation: Implementation
    status: str
    reason: str = ""
    time_ms: Interval | None = None
    fitted: str = ""
    stored: Stored | None = None
    run: Run | None = None
    disturbed: bool = False

    @property
    def why_not(self) -> str:
        """Why it has no time."""
        return self.reason if self.status == MISSING else f"{self.status}: {self.reason}"

    @property
    def kernel(self) -> str:
        """The kernel that ran, as observed; "" if none was seen."""
        return str((self.stored and self.stored.row.get("kernel")) or "")

    @property
    def rate(self) -> Rate | None:
        """Of a decode step that was measured: what it must read over the time it took."""
        if self.stored is None or self.time_ms is None or self.fitted:
            return None
        found = traffic(self.stored.row, self.stored.run.meta)
        return None if found is None else found.rate(self.time_ms)

    @property
    def processor_ms(self) -> float | None:
        """Of a call in all threads, measured at this very length, if other work disturbed it."""
        if self.stored is None or self.fitted or not self.disturbed:
            return None
        samples = processor_samples(self.stored.row, PROCESSOR_TIMES[0])
        return typical_ms(samples) if is_known(samples) else None

    @property
    def is_warm(self) -> bool:
        """Whether caches may have held the keys of its calls, or of those it is fitted through."""
        if self.fitted:
            return self.run is not None and caches(self.run.meta) == "warm"
        return self.stored is not None and is_warm(self.stored.row)

    @property
    def peak_bytes(self) -> int | None:
        """Measured, at this very length."""
        return self.stored.row.get("peak_bytes") if self.stored and self.status == "ok" else None


@dataclass(slots=True)
class Times:
    """By stored rows, and fits through them."""

    rows: StoredRows
    _fits: dict[Any, "tuple[Growth, Run] | None"] = field(default_factory=dict)

    def cell(self, implementation: Implementation, asked: Asked) -> Cell:
        """Of one call in one layer."""
        cell = Cell(asked=asked, implementation=implementation, status=MISSING)
        problem = asked.problem
        if problem is None:
            return replace(cell, reason=f"not known for {asked.layer}: {asked.why}")
        stored = self.rows.of(problem).get(implementation.backend)
        if stored is not None:
            row, known = stored.row, replace(cell, stored=stored, run=stored.run)
            if row["status"] != "ok":
                return replace(known, status=row["status"], reason=row.get("reason") or "")
            time_ms = latency_interval(row.get("block_ms") or [])
            if isfinite(time_ms.value):
                blocks = sum(map(len, row["block_ms"]))
                is_disturbed = in_most(row.get("contended_blocks"), blocks)
                return replace(known, status="ok", time_ms=time_ms, disturbed=is_disturbed)
        found = self._fitted(cell, problem)
        lacking = stored is not None and found.reason == MISSING
        return replace(found, reason="its row has no latency") if lacking else found

    def cells(self, implementation: Implementation, asked: Sequence[Asked]) -> list[Cell]:
        return [self.cell(implementation, one) for one in asked]

    def _fitted(self, cell: Cell, problem: Fields) -> Cell:
        """Not beyond four times the longest measured length."""
        place = cell.implementation.backend, key_over(problem)
        if place not in self._fits:
            self._fits[place] = _fit(self.rows.over_lengths(problem, place[0]), problem)
        fit, n = self._fits[place], length(problem)
        if fit is None:
            return replace(cell, reason=MISSING)
        from ..growth_fit import predict

        growth, run = fit
        time_ms = predict(growth, n)
        if time_ms.reason:
            return replace(cell, reason=f"{MISSING}, and {time_ms.reason}")
        if not growth.describes:
            return replace(cell, reason=f"{MISSING}, and no formula describes the other lengths")
        words = f"fitted through N = {', '.join(map(spaced, growth.lengths))}"
        beyond = ", beyond them" if n > growth.lengths[-1] else ""
        return replace(
            cell,
            status="ok",
            time_ms=time_ms,
            fitted=words + beyond,
            run=run,
            disturbed=growth.disturbed,
        )


def _fit(stored: Sequence[Stored], problem: Fields) -> "tuple[Growth, Run] | None":
    """By a + b N + c N^2 through the rows of the newest run that has enough lengths."""
    from ..growth_fit import FEWEST_LENGTHS, growth

    timed = [one for one in stored if one.row["status"] == "ok" and one.row.get("block_ms")]
    timed = [*alike_in_caches(timed)]
    for run in {id(one.run): one.run for one in timed}.values():
        mine = {one.row["case"] for one in timed if one.run is run}
        if len(mine) >= FEWEST_LENGTHS:
            from ..data.load import rows_of

            rows = [row for row in rows_of([run]) if row["case"] in mine]
            return growth(rows, rows[0]["backend"], growing(problem)[0]), run
    return None


def total(cells: Sequence[Cell]) -> Interval:
    """Of all layers. Bounds add up as if all errors went the same way, the widest they can be."""
    times = [(cell.asked.count, cell.time_ms) for cell in cells if cell.time_ms is not None]
    value, low, high = (
        sum(count * getattr(time, name) for count, time in times)
        for name in ("value", "low", "high")
    )
    units = min((time.units for _, time in times), default=0)
    reason = next((time.reason for _, time in times if time.reason), "")
    return Interval(value=value, low=low, high=high, units=units, reason=reason)


def last_within(most: int, within: Callable[[int], bool], known: int = 0) -> int:
    """The largest of 1 to `most` that is, by bisection, at least `known`; 0 if none is."""
    low, high, middle = known, most + 1, most
    while high - low > 1:
        low, high = (middle, high) if within(middle) else (low, middle)
        middle = (low + high) // 2
    return low
