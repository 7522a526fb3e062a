"""Which implementation is fastest in one phase at one context, over all layers of the model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import expm1, inf, isfinite, log1p, nan, sqrt

from ...harness.stats.intervals import Interval, latency_interval
from ..comparison.case_samples import CaseSamples, case_samples
from ..comparison.verdict import (
    BETTER_WORSE,
    DEFAULT_MARGIN,
    SAME,
    UNDECIDED,
    CaseVerdict,
    Rules,
    case_verdicts,
    verdict_of,
)
from ..data.decode import Rate, traffic
from ..data.noise_floor import process_noise
from ..data.read import Run
from ..ratio import Noise, of_one_process, ratio_of_intervals
from .asked import Asked, Implementation, Inquiry, Phase
from .stored import Stored, StoredRows

MISSING = "not measured"
FASTER, SLOWER = BETTER_WORSE["latency"]
DOUBTS = {"between_runs", "clocks_differ", "throttled", "contended", "many_claims"}
"""Reasons of a part that leave the whole undecided, however clear its interval is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One implementation on one kind of layer: time of a call in ms, peak bytes, how it ended.

    `status`: ok, MISSING, or how its row ended, with the reason. `fitted`: the time comes from
    other lengths of `fit_run`, in words; "" if this very length was measured. `fit_disturbed`: as
    fitted.Fitted.disturbed.
    """

    asked: Asked
    implementation: Implementation
    status: str
    reason: str = ""
    time_ms: Interval | None = None
    fitted: str = ""
    stored: Stored | None = None
    fit_run: Run | None = None
    fit_disturbed: bool = False

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
    def peak_bytes(self) -> int | None:
        """Measured, at this very length."""
        return self.stored.row.get("peak_bytes") if self.stored and self.status == "ok" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """The time over all layers as a ratio to the fastest, with its verdict and reasons.

    `margin_ratio`: a difference within it is none.
    """

    ratio: float
    low: float
    high: float
    verdict: str
    reasons: tuple[str, ...]
    paired: bool
    margin_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An implementation in one phase at one context.

    `total_ms`: of all its layers' calls, None if it cannot be known; `why_not` says why. `against`:
    None for the fastest itself.
    """

    implementation: Implementation
    cells: Sequence[Cell]
    total_ms: Interval | None
    why_not: str = ""
    missing: bool = False
    against: Against | None = None

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
    def ties(self) -> list[Choice]:
        """Those that cannot be told apart from the fastest, or differ less than the margin."""
        return [one for one in self.choices if one.against and one.against.verdict != SLOWER]

    @property
    def word_of_best(self) -> str:
        """What the first one is called: nothing is claimed that is not decided."""
        undecided = any(one.against and one.against.verdict == UNDECIDED for one in self.ties)
        return "fastest seen" if undecided else "fastest"

    @property
    def missing(self) -> list[Implementation]:
        """Those without a row."""
        return [one.implementation for one in self.choices if one.missing]


def decide(inquiry: Inquiry, rows: StoredRows, phase: Phase, context: int) -> Decision:
    """From rows that there are; what is missing is said, and nothing is measured."""
    asked = inquiry.shapes.asked(phase, context)
    able = [one for one in asked if one.problem is not None]
    implementations = inquiry.implementations if able else ()
    choices = [_choice(implementation, able, rows) for implementation in implementations]
    timed = sorted(
        (one for one in choices if one.total_ms is not None),
        key=lambda one: one.total_ms.value if one.total_ms else inf,
    )
    others = [one for one in choices if one.total_ms is None]
    return Decision(
        phase=phase,
        context=context,
        choices=[*_compared(timed), *others],
        not_measured=[one for one in asked if one.problem is None],
    )


# ---- one implementation --------------------------------------------------------------------------


def _choice(implementation: Implementation, asked: Sequence[Asked], rows: StoredRows) -> Choice:
    cells = [_cell(implementation, one, rows) for one in asked]
    lacking = next((cell for cell in cells if cell.status != "ok"), None)
    if lacking is not None:
        missing = lacking.status == MISSING
        why = lacking.reason if missing else f"{lacking.status}: {lacking.reason}"
        return Choice(
            implementation=implementation,
            cells=cells,
            total_ms=None,
            why_not=why,
            missing=missing,
        )
    return Choice(implementation=implementation, cells=cells, total_ms=_total(cells))


def _cell(implementation: Implementation, asked: Asked, rows: StoredRows) -> Cell:
    assert asked.problem is not None
    stored = rows.of(asked.problem).get(implementation.backend)
    cell = Cell(asked=asked, implementation=implementation, status=MISSING, stored=stored)
    if stored is not None:
        row = stored.row
        if row["status"] != "ok":
            return replace(cell, status=row["status"], reason=row.get("reason") or "")
        time_ms = latency_interval(row.get("block_ms") or [])
        if isfinite(time_ms.value):
            return replace(cell, status="ok", time_ms=time_ms)
        return replace(cell, reason="its row has no latency", stored=None)
    from .fitted import fitted_time  # pandas and scipy take long to import, and most need no fit

    found = fitted_time(rows.over_lengths(asked.problem, implementation.backend), asked.problem)
    if found.time_ms is None:
        return replace(cell, reason=found.words)
    return replace(
        cell,
        status="ok",
        time_ms=found.time_ms,
        fitted=found.words,
        fit_run=found.run,
        fit_disturbed=found.disturbed,
    )


def _total(cells: Sequence[Cell]) -> Interval:
    """Bounds add up as if all errors went the same way, which is the widest they can be."""
    times = [(cell.asked.count, cell.time_ms) for cell in cells if cell.time_ms is not None]
    value, low, high = (
        sum(count * getattr(time, name) for count, time in times)
        for name in ("value", "low", "high")
    )
    units = min(time.units for _, time in times)
    reason = next((time.reason for _, time in times if time.reason), "")
    return Interval(value=value, low=low, high=high, units=units, reason=reason)


# ---- against the fastest -------------------------------------------------------------------------


def _compared(timed: Sequence[Choice]) -> Iterator[Choice]:
    if not timed:
        return
    best, *others = timed
    yield best
    verdicts = iter(_verdicts(best, others))
    for other in others:
        parts = [
            _part(one, two, verdicts) for one, two in zip(best.cells, other.cells, strict=True)
        ]
        weights = [cell.asked.count * _ms(cell) for cell in best.cells]
        yield replace(other, against=_combined(parts, weights))


def _ms(cell: Cell) -> float:
    return cell.time_ms.value if cell.time_ms is not None else nan


def _verdicts(best: Choice, others: Sequence[Choice]) -> list[CaseVerdict]:
    """One for each pair of measured cells, in order; all together, for the sake of Holm's rule."""
    pairs: list[tuple[CaseSamples | None, CaseSamples | None]] = []
    rules: Rules | None = None
    for other in others:
        for one, two in zip(best.cells, other.cells, strict=True):
            if one.stored is None or two.stored is None:
                continue
            pairs.append((case_samples(one.stored.row), case_samples(two.stored.row)))
            rules = _weaker(rules, _rules(one.stored.run, two.stored.run))
    if rules is None:
        return []
    return [one for one in case_verdicts(pairs, rules) if one.metric in ("latency", "status")]


def _rules(base: Run, new: Run) -> Rules:
    noise, floor = process_noise([base], base)
    return Rules(
        paired_floor_ratio=floor.paired_noise_ratio if floor else 0.0,
        unpaired_floor_ratio=floor.run_noise_ratio if floor else 0.0,
        same_run=base.path == new.path,
        backends=True,
        noise=Noise(process=noise, between_runs=floor.between_runs if floor else None),
    )


def _weaker(known: Rules | None, other: Rules) -> Rules:
    """Rules for all pairs: those of one run hold only if every pair is from one."""
    if known is None:
        return other
    return replace(known, same_run=known.same_run and other.same_run)


def _part(one: Cell, two: Cell, verdicts: Iterator[CaseVerdict]) -> Against:
    if one.stored is not None and two.stored is not None:
        found = next(verdicts)
        return Against(
            ratio=found.ratio,
            low=found.low,
            high=found.high,
            verdict=found.verdict,
            reasons=found.reasons,
            paired=found.paired,
            margin_ratio=found.margin_ratio,
        )
    return _fitted_part(one, two)


def _fitted_part(one: Cell, two: Cell) -> Against:
    """At least one of the two times is fitted, and has no samples.

    As between measured rows, two runs decide nothing unless it is known how much runs differ.
    """
    runs = [cell.stored.run if cell.stored is not None else cell.fit_run for cell in (one, two)]
    assert runs[0] is not None
    assert runs[1] is not None
    assert one.time_ms is not None
    assert two.time_ms is not None
    rules = _rules(runs[0], runs[1])
    between = rules.noise.between_runs
    unknown = not rules.same_run and between is None
    effects = [_own_ratio(cell, rules) for cell in (one, two)]
    if not rules.same_run and between is not None:
        effects.append(between.ratio)
    ratio, low, high = ratio_of_intervals(two.time_ms, one.time_ms, effects)
    margin_ratio = rules.margin_ratio("latency", paired=False)
    verdict, reasons = verdict_of(low, high, margin_ratio, "latency"), ["unpaired"]
    slower = two if verdict == SLOWER else one
    if unknown:
        verdict, reasons = UNDECIDED, ["between_runs", *reasons]
    elif verdict in (SLOWER, FASTER) and disturbed(slower):
        verdict, reasons = UNDECIDED, ["contended", *reasons]
    elif verdict == UNDECIDED:
        reasons = ["interval_wide", *reasons]
    return Against(
        ratio=ratio,
        low=low,
        high=high,
        verdict=verdict,
        reasons=tuple(reasons),
        paired=False,
        margin_ratio=margin_ratio,
    )


def _own_ratio(cell: Cell, rules: Rules) -> float:
    """By how much a process differs from the others, where the cell has one; a fit includes it."""
    if cell.stored is None or not of_one_process(dict(cell.stored.row)):
        return 0.0
    of_two = rules.noise.of_processes(disturbed=disturbed(cell)).ratio
    return expm1(log1p(of_two) / sqrt(2))


def disturbed(cell: Cell) -> bool:
    """Whether other work competed for the cores in most blocks that the time is from."""
    if cell.stored is None:
        return cell.fit_disturbed
    return case_samples(cell.stored.row).disturbed


def _combined(parts: Sequence[Against], weights: Sequence[float]) -> Against:
    """The ratio of the sums: the parts' ratios, weighted by the fastest one's time in each.

    Bounds as for a sum whose errors all go the same way.
    """
    if len(parts) == 1:
        return parts[0]
    total = sum(weights)
    ratio, low, high = (
        sum(w * getattr(part, name) for w, part in zip(weights, parts, strict=True)) / total
        for name in ("ratio", "low", "high")
    )
    reasons = tuple(dict.fromkeys(reason for part in parts for reason in part.reasons))
    margins = (part.margin_ratio for part in parts if isfinite(part.margin_ratio))
    margin_ratio = max(margins, default=DEFAULT_MARGIN["latency"])
    verdict = verdict_of(low, high, margin_ratio, "latency")
    if DOUBTS & set(reasons) and verdict != SAME:
        verdict = UNDECIDED
    return Against(
        ratio=ratio,
        low=low,
        high=high,
        verdict=verdict,
        reasons=reasons,
        paired=all(part.paired for part in parts),
        margin_ratio=margin_ratio,
    )
