"""Which implementation is fastest in one phase at one context, over all layers of the model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import expm1, isfinite, log1p, sqrt

from ...harness.stats.intervals import Interval
from ..comparison.case_samples import case_samples
from ..comparison.verdict import (
    BETTER_WORSE,
    DEFAULT_MARGIN,
    SAME,
    CaseVerdict,
    Rules,
    case_verdicts,
    verdict_of,
)
from ..data.noise_floor import process_noise
from ..data.read import Run
from ..ratio import of_one_process, ratio_of_intervals
from ..words import NOT_DECIDED
from .asked import Asked, Implementation, Inquiry, Phase
from .stored import StoredRows
from .times import MISSING, Cell, Times, total

FASTER, SLOWER = BETTER_WORSE["latency"]
AS_GOOD_RATIO = 1.1  # to the fastest, of one that is not clearly slower
DOUBTS = {"between_runs", "clocks_differ", "throttled", "contended", "many_claims"}
"""Reasons of a part that leave the whole open, however clear its interval is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An implementation in one phase at one context.

    `total_ms`: of all its layers' calls, None if it cannot be known; `why_not` says why. `against`:
    the time over all layers as a ratio to the fastest, with its verdict; None for the fastest.
    """

    implementation: Implementation
    cells: Sequence[Cell]
    against: CaseVerdict | None = None

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
        as_good = [one for one in self.ties if one.against and one.against.ratio <= AS_GOOD_RATIO]
        known = [(peak, one) for one in (self.best, *as_good) if (peak := one.peak_bytes)]
        return min(known, key=lambda of: of[0])[1]

    @property
    def name_of_best(self) -> str:
        return self.chosen.implementation.name if self.chosen else ""

    @property
    def ties(self) -> list[Choice]:
        """Those that are not decided to be slower than the fastest, or the same."""
        return [one for one in self.choices if one.against and one.against.verdict != SLOWER]

    @property
    def word_of_best(self) -> str:
        """What the first one is called: nothing is claimed that is not decided."""
        undecided = any(one.against and one.against.verdict == NOT_DECIDED for one in self.ties)
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
        choices=[*_compared(ranked), *others],
        not_measured=[one for one in asked if one.problem is None],
    )


# ---- against the fastest -------------------------------------------------------------------------


def _compared(timed: Sequence[Choice]) -> Iterator[Choice]:
    if not timed:
        return
    best, *others = timed
    yield best
    verdicts = iter(_verdicts(best, others))
    for other in others:
        parts = [
            next(verdicts) if one.stored and two.stored else _fitted_part(one, two)
            for one, two in zip(best.cells, other.cells, strict=True)
        ]
        weights = [cell.asked.count * cell.time_ms.value for cell in best.cells if cell.time_ms]
        yield replace(other, against=_combined(parts, weights))


def _verdicts(best: Choice, others: Sequence[Choice]) -> list[CaseVerdict]:
    """One for each pair of measured cells, in order; all together, for the sake of Holm's rule."""
    measured = [
        (one.stored, two.stored)
        for other in others
        for one, two in zip(best.cells, other.cells, strict=True)
        if one.stored and two.stored
    ]
    if not measured:
        return []
    # Rules of one run hold only if every pair is from one.
    same_run = all(one.run.path == two.run.path for one, two in measured)
    rules = replace(_rules(*(one.run for one in measured[0])), same_run=same_run)
    pairs = [(case_samples(one.row), case_samples(two.row)) for one, two in measured]
    return [one for one in case_verdicts(pairs, rules) if one.metric in ("latency", "status")]


def _rules(base: Run, new: Run) -> Rules:
    process, floor = process_noise([base], base)
    return Rules(floor=floor, process=process, same_run=base.path == new.path, backends=True)


def _fitted_part(one: Cell, two: Cell) -> CaseVerdict:
    """At least one of the two times is fitted, and has no samples.

    As between measured rows, two runs decide nothing unless it is known how much runs differ.
    """
    assert one.run is not None
    assert two.run is not None
    assert one.time_ms is not None
    assert two.time_ms is not None
    rules = _rules(one.run, two.run)
    between = rules.noise.between_runs
    effects = [_own_ratio(cell, rules) for cell in (one, two)]
    if not rules.same_run and between is not None:
        effects.append(between.ratio)
    ends = ratio_of_intervals(two.time_ms, one.time_ms, effects)
    found = _judged(ends, rules.margin_ratio("latency", paired=False), ["unpaired"])
    slower, why = two if found.verdict == SLOWER else one, ""
    if not rules.same_run and between is None:
        why = "between_runs"
    elif found.verdict in (SLOWER, FASTER) and slower.disturbed:
        why = "contended"
    elif found.verdict == NOT_DECIDED:
        why = "interval_wide"
    return replace(found, verdict=NOT_DECIDED, reasons=(why, "unpaired")) if why else found


def _judged(
    ends: tuple[float, float, float], margin_ratio: float, reasons: Sequence[str]
) -> CaseVerdict:
    """`ends`: the ratio and its bounds."""
    ratio, low, high = ends
    return CaseVerdict(
        metric="latency",
        verdict=verdict_of(low, high, margin_ratio, "latency"),
        reasons=tuple(reasons),
        ratio=ratio,
        low=low,
        high=high,
        margin_ratio=margin_ratio,
    )


def _own_ratio(cell: Cell, rules: Rules) -> float:
    """By how much a process differs from the others, where the cell has one; a fit includes it."""
    if cell.stored is None or not of_one_process(dict(cell.stored.row)):
        return 0.0
    of_two = rules.noise.of_processes(disturbed=cell.disturbed).ratio
    return expm1(log1p(of_two) / sqrt(2))


def _combined(parts: Sequence[CaseVerdict], weights: Sequence[float]) -> CaseVerdict:
    """The ratio of the sums: the parts' ratios, weighted by the fastest one's time in each.

    Bounds as for a sum whose errors all go the same way.
    """
    if len(parts) == 1:
        return parts[0]
    ratio, low, high = (
        sum(w * getattr(part, name) for w, part in zip(weights, parts, strict=True)) / sum(weights)
        for name in ("ratio", "low", "high")
    )
    reasons = list(dict.fromkeys(reason for part in parts for reason in part.reasons))
    margins = (part.margin_ratio for part in parts if isfinite(part.margin_ratio))
    found = _judged((ratio, low, high), max(margins, default=DEFAULT_MARGIN["latency"]), reasons)
    in_doubt = DOUBTS & set(reasons) and found.verdict != SAME
    verdict = NOT_DECIDED if in_doubt else found.verdict
    return replace(found, verdict=verdict, paired=all(part.paired for part in parts))
