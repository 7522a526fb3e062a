"""Which implementation is fastest in one phase at one context, over all layers of the model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...harness.stats.intervals import Interval
from ..data.noise_floor import DISTURBED
from ..judging.noise import Allowance, between_runs, noise_of, one_process
from ..judging.pair import HINDERED, of_one_process, ratio_of_times, time_ratio
from ..judging.ratio import Ratio, summed
from .asked import Asked, Implementation, Inquiry, Phase
from .stored import StoredRows
from .times import MISSING, Cell, Times, total

AS_GOOD_RATIO = 1.1  # to the fastest, of one that is not clearly slower


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
        return None if self.lacking else total(self.cells)

    @property
    def processor_ms(self) -> float | None:
        """Of all its layers' calls; None unless all are known beside times that were disturbed."""
        known = [(cell.asked.count, cell.processor_ms) for cell in self.cells]
        found = [count * one for count, one in known if one is not None]
        return sum(found) if found and len(found) == len(known) else None

    @property
    def why_not(self) -> str:
        return self.lacking.why_not if self.lacking else ""

    @property
    def missing(self) -> bool:
        return self.lacking is not None and self.lacking.status == MISSING

    @property
    def kernels(self) -> list[str]:
        return list(dict.fromkeys(cell.kernel for cell in self.cells if cell.kernel))

    @property
    def fitted(self) -> str:
        return next((cell.fitted for cell in self.cells if cell.fitted), "")

    @property
    def peak_bytes(self) -> int | None:
        """Of the layer that needs most; None unless all are known."""
        peaks = [cell.peak_bytes for cell in self.cells]
        known = [peak for peak in peaks if peak is not None]
        return max(known) if peaks and len(known) == len(peaks) else None


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
    def chosen(self) -> Choice | None:
        """Of those as good as the fastest the one that needs least memory, where that is known."""
        if self.best is None or not self.best.peak_bytes:
            return self.best
        as_good = [one for one in self.ties if one.against and one.against.value <= AS_GOOD_RATIO]
        known = [(peak, one) for one in (self.best, *as_good) if (peak := one.peak_bytes)]
        return min(known, key=lambda of: of[0])[1]

    @property
    def name_of_best(self) -> str:
        return self.chosen.implementation.name if self.chosen else ""

    @property
    def ties(self) -> list[Choice]:
        """Those that are not decided to be slower than the fastest, or the same."""
        return [one for one in self.choices if one.against and one.against.word != "more"]

    @property
    def word_of_best(self) -> str:
        """What the first one is called: nothing is claimed that is not decided."""
        undecided = any(one.against and not one.against.is_decided for one in self.ties)
        return "fastest seen" if undecided else "fastest"

    @property
    def missing(self) -> list[Implementation]:
        """Those without a row."""
        return [one.implementation for one in self.choices if one.missing]


def decide(
    inquiry: Inquiry, rows: StoredRows, phase: Phase, context: int, times: Times | None = None
) -> Decision:
    """From rows that there are; what is missing is said, and nothing is measured."""
    times = times or Times(rows)
    asked = inquiry.shapes.asked(phase, context)
    able = [one for one in asked if one.problem is not None]
    choices = [
        Choice(implementation=implementation, cells=times.cells(implementation, able))
        for implementation in (inquiry.implementations if able else ())
    ]
    totals = {one.implementation.name: one.total_ms for one in choices}
    timed = {name: found.value for name, found in totals.items() if found is not None}
    ranked = sorted(
        (one for one in choices if one.implementation.name in timed),
        key=lambda one: timed[one.implementation.name],
    )
    others = [one for one in choices if one.implementation.name not in timed]
    return Decision(
        phase=phase,
        context=context,
        choices=[*_compared(ranked, times), *others],
        not_measured=[one for one in asked if one.problem is None],
    )


# ---- against the fastest -------------------------------------------------------------------------


def _compared(timed: Sequence[Choice], times: Times) -> Iterator[Choice]:
    if not timed:
        return
    best, *others = timed
    yield best
    for other in others:
        parts = [
            _part(one, two, times.rows) for one, two in zip(best.cells, other.cells, strict=True)
        ]
        weights = [cell.asked.count * cell.time_ms.value for cell in best.cells if cell.time_ms]
        shares = [weight / sum(weights) for weight in weights]
        yield replace(other, against=parts[0] if len(parts) == 1 else summed(parts, shares))


def _part(one: Cell, two: Cell, rows: StoredRows) -> Ratio:
    """Of one layer's call: by the samples of both, or by the intervals of fitted times."""
    if one.stored and two.stored:
        found = time_ratio(rows.loaded(two.stored), rows.loaded(one.stored))
        assert found is not None  # both cells have a time
        return found
    assert one.run is not None
    assert two.run is not None
    assert one.time_ms is not None
    assert two.time_ms is not None
    noise = noise_of(rows.any_of(one.run))
    single = any(map(_is_of_one_process, (one, two)))
    allowed = [one_process(noise)] if single else []
    if one.run.path != two.run.path:
        allowed.append(between_runs(noise))
    if one.disturbed or two.disturbed:
        allowed.append(Allowance(DISTURBED, "contended", HINDERED["contended"]))
    return ratio_of_times(two.time_ms, one.time_ms, allowed)


def _is_of_one_process(cell: Cell) -> bool:
    """A fit includes how much processes differ."""
    return cell.stored is not None and of_one_process(dict(cell.stored.row))
