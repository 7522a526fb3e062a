"""Which implementation is fastest in one phase at one context, over all layers of the model.

Times are those of rows, or fitted through rows of other lengths and then marked as such; ratios,
intervals and marks are the judge's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from ...harness.files.printable import spaced
from ...harness.stats.intervals import Interval, latency_interval
from ..data.decode import Rate, traffic
from ..data.noise_floor import DISTURBED
from ..data.processor_time import in_most
from ..data.read import Run
from ..data.run_meta import caches
from ..judging.noise import Allowance, between_runs, noise_of, one_process
from ..judging.pair import HINDERED, of_one_process, ratio_of_times, time_ratio
from ..judging.ratio import Ratio, summed
from .asked import Asked, Implementation, Inquiry, Phase, growing, key_over, length
from .stored import Stored, StoredRows, alike_in_caches, is_warm

if TYPE_CHECKING:
    from ..growth_fit import Growth  # whose pandas and scipy take long to import

MISSING = "not measured"
AS_GOOD_RATIO = 1.1  # to the fastest, of one that is not clearly slower


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One implementation on one kind of layer: time of a call in ms, and how it ended.

    `status`: ok, MISSING, or how its row ended, with the reason. `fitted`: the time comes from
    other lengths, in words; "" if this very length was measured. `run`: that the time is from.
    `disturbed`: other work competed for the cores in most blocks that it is from.
    """

    asked: Asked
    implementation: Implementation
    status: str = MISSING
    reason: str = MISSING
    call_ms: Interval | None = None
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
        if self.stored is None or self.call_ms is None or self.fitted:
            return None
        found = traffic(self.stored.row, self.stored.run.meta)
        return None if found is None else found.rate(self.call_ms)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An implementation in one phase at one context.

    `total_ms`: of all its layers' calls, None if it cannot be known; `why_not` says why. `against`:
    the time over all layers as a ratio to the fastest, with its mark; None for the fastest.
    """

    implementation: Implementation
    cells: Sequence[Cell]
    against: Ratio | None = None

    @property
    def lacking(self) -> Cell | None:
        """The first layer without a time."""
        return next((cell for cell in self.cells if cell.status != "ok"), None)

    @property
    def total_ms(self) -> Interval | None:
        """Bounds add up as if all errors went the same way, the widest they can be."""
        times = [(cell.asked.count, cell.call_ms) for cell in self.cells if cell.call_ms]
        if self.lacking or not times:
            return None
        value, low, high = (
            sum(count * getattr(time, name) for count, time in times)
            for name in ("value", "low", "high")
        )
        return Interval(value=value, low=low, high=high, units=min(one.units for _, one in times))

    @property
    def why_not(self) -> str:
        return self.lacking.why_not if self.lacking else ""

    @property
    def missing(self) -> bool:
        return self.lacking is not None and self.lacking.status == MISSING

    @property
    def fitted(self) -> str:
        return next((cell.fitted for cell in self.cells if cell.fitted), "")

    @property
    def peak_bytes(self) -> int | None:
        """Of the layer that needs most; None unless all are known."""
        known = [peak for cell in self.cells if (peak := cell.peak_bytes) is not None]
        return max(known) if known and len(known) == len(self.cells) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The choices in one phase at one context, the fastest first, those without a time last.

    `not_measured`: kinds of layers that attnbench cannot measure.
    """

    phase: Phase
    context: int
    choices: Sequence[Choice]
    not_measured: Sequence[Asked]

    @property
    def best(self) -> Choice | None:
        first = self.choices[0] if self.choices else None
        return first if first is not None and first.total_ms is not None else None

    @property
    def ties(self) -> list[Choice]:
        """Those that are not decided to be slower than the fastest, or the same."""
        return [one for one in self.choices if one.against and one.against.word != "more"]

    @property
    def close(self) -> list[Choice]:
        """The fastest and those of which it is not decided; empty if it is clear."""
        undecided = [one for one in self.ties if one.against and not one.against.is_decided]
        return [self.best, *undecided] if self.best is not None and undecided else []

    @property
    def as_good(self) -> list[Choice]:
        """The fastest, and those that are not shown to be slower and were hardly."""
        near = [one for one in self.ties if one.against and one.against.value <= AS_GOOD_RATIO]
        return [self.best, *near] if self.best is not None else []

    @property
    def chosen(self) -> Choice | None:
        """Of those as good as the fastest the one that needs least memory, where that is known."""
        if self.best is None or not self.best.peak_bytes:
            return self.best
        return min(
            (one for one in self.as_good if one.peak_bytes), key=lambda one: one.peak_bytes or 0
        )

    @property
    def name_of_best(self) -> str:
        return self.chosen.implementation.name if self.chosen else ""

    @property
    def missing(self) -> list[Implementation]:
        """Those without a row."""
        return [one.implementation for one in self.choices if one.missing]


@dataclass(slots=True)
class Times:
    """Times of calls at any length."""

    rows: StoredRows
    _fits: dict[Any, "tuple[Growth, Run] | None"] = field(default_factory=dict)

    def cell(self, implementation: Implementation, asked: Asked) -> Cell:
        """Of one call in one layer that can be measured."""
        cell = Cell(asked=asked, implementation=implementation)
        assert asked.problem is not None
        stored = self.rows.of(asked.problem).get(implementation.backend)
        if stored is None:
            return self._fitted(cell)
        row, known = stored.row, replace(cell, stored=stored, run=stored.run)
        if row["status"] != "ok":
            return replace(known, status=row["status"], reason=row.get("reason") or "")
        time_ms = latency_interval(row.get("block_ms") or [])
        if isfinite(time_ms.value):
            busy = in_most(row.get("contended_blocks"), sum(map(len, row["block_ms"])))
            return replace(known, status="ok", reason="", call_ms=time_ms, disturbed=busy)
        found = self._fitted(cell)
        return replace(found, reason="its row has no latency") if found.reason == MISSING else found

    def _fitted(self, cell: Cell) -> Cell:
        """Not beyond four times the longest measured length."""
        problem = cell.asked.problem or {}
        place = key_over(problem), cell.implementation.backend
        if place not in self._fits:
            grows = growing(problem)[0]
            self._fits[place] = _fit(self.rows.over_lengths(problem, place[1]), grows)
        found = self._fits[place]
        if found is None:
            return cell
        from ..growth_fit import predict

        growth, run = found
        time_ms = predict(growth, n := length(problem))
        why_not = "" if growth.describes else "no formula describes the other lengths"
        if time_ms.reason or why_not:
            return replace(cell, reason=f"{MISSING}, and {time_ms.reason or why_not}")
        beyond = ", beyond them" if n > growth.lengths[-1] else ""
        words = f"fitted through N = {', '.join(map(spaced, growth.lengths))}{beyond}"
        return replace(cell, status="ok", reason="", call_ms=time_ms, fitted=words, run=run,
                       disturbed=growth.disturbed)  # fmt: skip


def _fit(stored: Mapping[int, Stored], grows: str) -> "tuple[Growth, Run] | None":
    """By a + b N + c N^2 through the rows of the newest run that has enough lengths."""
    from ..data.load import rows_of
    from ..growth_fit import FEWEST_LENGTHS, growth

    ok = (one for one in stored.values() if one.row["status"] == "ok")
    timed = alike_in_caches([one for one in ok if one.row.get("block_ms")])
    for run in {id(one.run): one.run for one in timed}.values():
        mine = {one.row["case"] for one in timed if one.run is run}
        if len(mine) >= FEWEST_LENGTHS:
            rows = [row for row in rows_of([run]) if row["case"] in mine]
            return growth(rows, rows[0]["backend"], grows), run
    return None


def decide(
    inquiry: Inquiry, rows: StoredRows, phase: Phase, context: int, times: Times | None = None
) -> Decision:
    """From rows that there are; what is missing is said, and nothing is measured."""
    times, asked = times or Times(rows), inquiry.shapes.asked(phase, context)
    able = [one for one in asked if one.problem is not None]
    choices = [
        Choice(implementation=one, cells=[times.cell(one, layer) for layer in able])
        for one in (inquiry.implementations if able else ())
    ]
    timed = [(of.value, one) for one in choices if (of := one.total_ms) is not None]
    ranked = [one for _, one in sorted(timed, key=lambda of: of[0])]
    return Decision(
        phase=phase,
        context=context,
        choices=[*_compared(ranked, rows), *(one for one in choices if one.total_ms is None)],
        not_measured=[one for one in asked if one.problem is None],
    )


def _compared(ranked: Sequence[Choice], rows: StoredRows) -> Iterator[Choice]:
    """The fastest, and the others against it, each layer by its share of the fastest's time."""
    for place, other in enumerate(ranked):
        best, parts = ranked[0], list[Ratio]()
        if place:
            pairs = zip(best.cells, other.cells, strict=True)
            parts = [_part(one, two, rows) for one, two in pairs]
        weights = [cell.asked.count * cell.call_ms.value for cell in best.cells if cell.call_ms]
        shares = [weight / sum(weights) for weight in weights]
        several = summed(parts, shares) if len(parts) > 1 else None
        yield replace(other, against=several or next(iter(parts), None))


def _part(one: Cell, two: Cell, rows: StoredRows) -> Ratio:
    """Of one layer's call: by the samples of both, or by the intervals of fitted times."""
    if one.stored and two.stored:
        pair = [rows.loaded(cell.run)[cell.row["case"]] for cell in (two.stored, one.stored)]
        found = time_ratio(*pair)
        assert found is not None  # both cells have a time
        return found
    assert one.run is not None
    assert two.run is not None
    assert one.call_ms is not None
    assert two.call_ms is not None
    noise = noise_of(next(iter(rows.loaded(one.run).values())))
    single = any(of.stored is not None and of_one_process(dict(of.stored.row)) for of in (one, two))
    allowed = [one_process(noise)] if single else []  # a fit includes how much processes differ
    if one.run.path != two.run.path:
        allowed.append(between_runs(noise))
    if one.disturbed or two.disturbed:
        allowed.append(Allowance(DISTURBED, "contended", HINDERED["contended"]))
    return ratio_of_times(two.call_ms, one.call_ms, allowed)
