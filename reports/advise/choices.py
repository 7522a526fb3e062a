"""Which implementation is fastest in one phase at one context, over all layers of the model.

Times are those of rows; ratios, intervals and marks are the judge's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

from ...harness.stats.intervals import Interval, latency_interval
from ..data.peaks import Rate, traffic
from ..data.processor_time import in_most
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio, summed
from .asked import Asked, Implementation, Inquiry, Phase
from .stored import Stored, StoredRows, is_warm

MISSING = "not measured"
AS_GOOD_RATIO = 1.1  # to the fastest, of one that is not clearly slower


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """One implementation on one kind of layer: time of a call in ms, and how it ended.

    `status`: ok, MISSING, or how its row ended, with the reason. `kernel`: the one that ran, as
    observed; "" if none was seen. `rate`: of a decode step, what it must read over the time it
    took. `is_warm`: caches may have held its keys. `disturbed`: other work competed for the cores
    in most of its blocks.
    """

    asked: Asked
    implementation: Implementation
    status: str = MISSING
    reason: str = MISSING
    stored: Stored | None = None
    call_ms: Interval | None = None
    peak_bytes: int | None = None
    kernel: str = ""
    rate: Rate | None = None
    is_warm: bool = False
    disturbed: bool = False

    @property
    def why_not(self) -> str:
        """Why it has no time."""
        return self.reason if self.status == MISSING else f"{self.status}: {self.reason}"


def cell_of(rows: StoredRows, implementation: Implementation, asked: Asked) -> LayerTime:
    """By the row of this very problem, if there is one."""
    cell = LayerTime(asked=asked, implementation=implementation)
    stored = rows.of(asked.problem or {}).get(implementation.backend)
    if stored is None:
        return cell
    row, cell = stored.row, replace(cell, stored=stored)
    if row["status"] != "ok":
        return replace(cell, status=row["status"], reason=row.get("reason") or "")
    call_ms = latency_interval(row.get("block_ms") or [])
    if not isfinite(call_ms.value):
        return replace(cell, reason="its row has no latency")
    moved = traffic(row, stored.run.meta)
    return replace(
        cell,
        status="ok",
        reason="",
        call_ms=call_ms,
        peak_bytes=row.get("peak_bytes"),
        kernel=str(row.get("kernel") or ""),
        rate=moved.rate(call_ms) if moved else None,
        is_warm=is_warm(row),
        disturbed=in_most(row.get("contended_blocks"), sum(map(len, row["block_ms"]))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An implementation in one phase at one context.

    `total_ms`: of all its layers' calls, None if it cannot be known; `why_not` says why. `against`:
    the time over all layers as a ratio to the fastest, with its mark; None for the fastest.
    """

    implementation: Implementation
    cells: Sequence[LayerTime]
    against: Ratio | None = None

    @property
    def lacking(self) -> LayerTime | None:
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
    def close(self) -> list[Choice]:
        """The fastest and those of which it is not decided; empty if it is clear."""
        undecided = [one for one in self.choices if one.against and not one.against.is_decided]
        return [self.choices[0], *undecided] if undecided else []

    @property
    def as_good(self) -> list[Choice]:
        """The fastest, and those that are not shown to be slower and were hardly."""
        others = [(one, one.against) for one in self.choices if one.against]
        near = [one for one, by in others if by.word != "more" and by.value <= AS_GOOD_RATIO]
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
    def as_light(self) -> list[Choice]:
        """Those as good as the fastest that hardly need more memory than the chosen one."""
        chosen = self.chosen.peak_bytes if self.chosen else None
        most = AS_GOOD_RATIO * (chosen or inf)
        return [one for one in self.as_good if (one.peak_bytes or 0) <= most]

    @property
    def name_of_best(self) -> str:
        return self.chosen.implementation.name if self.chosen else ""

    @property
    def missing(self) -> list[Implementation]:
        """Those without a row."""
        return [one.implementation for one in self.choices if one.missing]


def decide(inquiry: Inquiry, rows: StoredRows, phase: Phase, context: int) -> Decision:
    """From rows that there are; what is missing is said, and nothing is measured."""
    asked = inquiry.shapes.asked(phase, context)
    able = [one for one in asked if one.problem is not None]
    choices = [
        Choice(implementation=one, cells=[cell_of(rows, one, layer) for layer in able])
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


def _part(one: LayerTime, two: LayerTime, rows: StoredRows) -> Ratio:
    """Of one layer's call, by the samples of both."""
    pair = [rows.loaded(of.run)[of.row["case"]] for of in (two.stored, one.stored) if of]
    found = time_ratio(*pair)
    assert found is not None  # both cells have a time
    return found
