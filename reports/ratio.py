"""How many times as long one case takes as another one, and whether that is more than noise.

The one comparison of two cases: pages, `compare`, devices and advice take their ratios from here.
Two cases of the same blocks are paired; others are compared by their processes (Welch). The
interval includes what the samples were not measured over (`Noise`): processes, if one of the two
has a single one, and runs, if the two were measured at different times.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp, expm1, hypot, isfinite, log, log1p, nan

from ..harness.stats.contrasts import (
    MANY,
    Contrast,
    Spread,
    assumed_spread,
    paired_contrast,
    unpaired_contrast,
)
from ..harness.stats.intervals import Interval, Samples
from .data.noise_floor import ASSUMED, ASSUMED_RATIO, ProcessNoise, assumed_noise, share_text
from .data.noise_floor import DISTURBED as DISTURBED_SPREAD
from .data.processor_time import PROCESSOR_TIMES, disturbed, is_known, processor_samples, typical_ms
from .data.row_groups import Row, once, problem
from .formatting import (
    number_text,
    ratio_bounds_text,
    ratio_range_text,
    rough_percent_text,
    times_text,
)
from .words import (
    BY_PROCESSOR_TIME,
    CONFIRMED,
    DISTURBED,
    NOISY,
    NOISY_RATIO,
    NOT_DECIDED,
    SAME,
    SEEN,
    Mark,
    Word,
    word_of,
)

PROCESSOR_TIME, OF_SHORT_CALLS = assumed_spread(0.21), assumed_spread(0.31)
"""How far the ratio of two processor times may be from that of the latencies on a quiet machine: 95
% of pairs of cases, beside four kinds of other work, were within it (docs/method.md).
"""
SHORT_CALL_MS = 1.0  # of processor time in the calling thread: waking others is much of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio with its 95 % interval (NaN without one).

    `paired`: measured in the same blocks, so drift cancels. `noise`: what the interval allows for
    because the rows do not show it, such as `the 12 % that processes differ on this machine`; "" if
    nothing. `disturbed`: as below, of either row.
    `tested`: the bounds of two one-sided tests, within those of the interval; None: the same.
    `by_processor_time`: of calls, because other work disturbed their time by the clock.
    `process`: how far the ratio of one process may be off; None if that is not known, or not all.
    """

    value: float
    low: float
    high: float
    paired: bool
    noise: str = ""
    disturbed: bool = False
    tested: tuple[float, float] | None = None
    by_processor_time: bool = False
    process: Spread | None = None

    @property
    def word(self) -> Word:
        """By the margin of what counts as the same. Times of several processes that other work
        disturbed decide nothing; the interval of a single one allows for that.
        """
        decides = bool(self.noise) or not self.disturbed
        return word_of(*(self.tested or (self.low, self.high))) if decides else NOT_DECIDED

    @property
    def clear(self) -> bool:
        """The interval excludes 1."""
        return isfinite(self.low) and isfinite(self.high) and not self.low <= 1 <= self.high

    @property
    def mark(self) -> Mark:
        """How sure it is that the ratio is not 1, or that it is."""
        if self.word == "same":
            return SAME
        if self.disturbed and not self.noise:
            return NOISY
        if self.clear:
            return CONFIRMED
        # Without an interval, both are NaN and no bound holds.
        return SEEN if self.low >= 1 / NOISY_RATIO and self.high <= NOISY_RATIO else NOISY

    @property
    def said(self) -> str:
        """In a sentence: more, less or the same, else how sure it is."""
        if self.mark == CONFIRMED:
            return "more" if self.value > 1 else "less"
        return self.mark.words

    @property
    def is_busy(self) -> bool:
        """Other work disturbed the times, so that a quiet machine would tell more."""
        return self.disturbed or self.by_processor_time

    @property
    def is_unjudged(self) -> bool:
        """Nothing but the clock tells, which other work disturbed."""
        return self.disturbed and not self.by_processor_time

    @property
    def text(self) -> str:
        return times_text(self.value, self.low, self.high) + self._how

    def text_to(self, base: str) -> str:
        """`2.10 times (2.05 to 2.16) the time of sdpa, by processor time`."""
        return f"{times_text(self.value, self.low, self.high)} the time of {base}{self._how}"

    @property
    def bounds(self) -> str:
        """`2.05 to 2.16, unpaired`, or `no interval`."""
        known = ratio_bounds_text(self.low, self.high)
        return f"{known}{self._how}" if known else "no interval"

    @property
    def short(self) -> str:
        """For cells: `×1.37 (1.10 to 1.70)`."""
        return f"×{number_text(self.value)}{ratio_range_text(self.low, self.high)}"

    @property
    def marked(self) -> str:
        """The same and how sure: `◐ ×1.37 (1.10 to 1.70)`."""
        return f"{self.mark.sign}\u00a0{self.short}"

    @property
    def explained(self) -> str:
        """`1.02 times (0.99 to 1.04)`, and what keeps it from being decided."""
        return self.text + self.why_not_decided

    @property
    def why_not_decided(self) -> str:
        """`, which allows for the 12 % that processes differ on this machine`; "" if the noise of
        these samples is all there is, or if it is decided.
        """
        if self.word != NOT_DECIDED:
            return ""
        return f", which allows for {self.noise}" if self.noise else DISTURBED * self.disturbed

    @property
    def beside(self) -> str:
        """`, while other work disturbed most blocks`, of a clear ratio."""
        return DISTURBED if self.clear and self.disturbed else ""

    @property
    def _how(self) -> str:
        how = f", {BY_PROCESSOR_TIME}" if self.by_processor_time else ""
        return how + ("" if self.paired else ", unpaired")


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What the samples of two cases do not show: how much processes and runs differ on the device.

    `between_runs`: None if that is not known. `pairs`: how much the ratio of two cases of the same
    blocks differs from process to process, learnt from all pairs of a run.
    """

    process: ProcessNoise = ASSUMED
    between_runs: Spread | None = None
    pairs: Spread | None = None

    def of_processes(self, *, disturbed: bool) -> Spread:
        """As was learnt, more if other work disturbed one of the two."""
        learnt = self.process.spread
        return DISTURBED_SPREAD if disturbed and learnt.ratio < DISTURBED_SPREAD.ratio else learnt

    def in_contrast(
        self, contrast: Contrast, *, one_process: bool, other_run: bool, disturbed: bool
    ) -> Contrast:
        """With the effects that these two cases do not show. `one_process`: one of them has a
        single one. `other_run`: they were measured at different times.
        """
        if one_process:
            contrast = contrast.with_effect(self.of_processes(disturbed=disturbed))
        elif not contrast.denominator:
            contrast = replace(contrast, prior=self.pairs)
        if other_run and self.between_runs is not None:
            contrast = contrast.with_effect(self.between_runs)
            if not one_process and self.process.source != "assumed":
                contrast = replace(contrast, single=self.process.spread)
        return contrast

    def text(self, *, one_process: bool, other_run: bool, disturbed: bool) -> tuple[float, str]:
        """By how much two equal cases may differ for that, and the same in words."""
        spread = self.of_processes(disturbed=disturbed)
        ratio, words = spread.ratio, share_text(spread.ratio, self.process.source)
        if spread is DISTURBED_SPREAD:
            words = f"{share_text(ratio, ASSUMED.source)} while other work disturbs them"
        if not one_process:
            ratio, words = 0.0, ""
        if other_run:
            known = self.between_runs is not None
            runs = self.between_runs.ratio if self.between_runs is not None else ASSUMED_RATIO
            ratio = expm1(hypot(log1p(ratio), log1p(runs)))
            differ = "differ on this machine" if known else "may differ"
            words = f"the {rough_percent_text(ratio)} that separate measurements {differ}"
        return ratio, words


def noise_of(row: Row) -> Noise:
    """On the device of a row, as the table of rows has it."""
    return once([row], "noise", lambda: _noise_of(row))


def _noise_of(row: Row) -> Noise:
    ratio = row.get("process_noise_ratio")
    process = assumed_noise(row.get("device"))
    if ratio is not None:
        spread = assumed_spread(ratio, row.get("process_noise_degrees") or MANY)
        process = ProcessNoise(spread=spread, source=row["process_noise_source"])
    runs = row.get("between_runs_ratio")
    between = None if runs is None else assumed_spread(runs, row["between_runs_degrees"] or MANY)
    ratio = row.get("pair_noise_ratio")
    pairs = None if ratio is None else assumed_spread(ratio, row["pair_noise_degrees"])
    return Noise(process=process, between_runs=between, pairs=pairs)


def time_ratio(numerator: Row, denominator: Row) -> Ratio | None:
    """None if either has no latency. Where nobody knows how much runs differ, it is assumed.

    By processor time, if other work disturbed most blocks of one and both rows have it.
    """
    if numerator.get("latency_ms") is None or denominator.get("latency_ms") is None:
        return None
    rows = (numerator, denominator)
    return once(rows, "time ratio", lambda: _time_ratio(rows))


def _time_ratio(rows: tuple[Row, Row]) -> Ratio:
    is_disturbed = disturbed(*rows)
    names = PROCESSOR_TIMES if is_disturbed else ()
    ways = [[processor_samples(row, name) for row in rows] for name in names]
    if ways and all(is_known(samples) for way in ways for samples in way):
        shortest_ms = min(map(typical_ms, ways[-1]))
        allowed = PROCESSOR_TIME if shortest_ms >= SHORT_CALL_MS else OF_SHORT_CALLS
        found = [_ratio_of(rows, way, processor_time=allowed) for way in ways]
        if all(isfinite(one.low) for one in found):
            nearest = min(found, key=lambda one: abs(log(one.value)))
            low, high = min(one.low for one in found), max(one.high for one in found)
            return replace(nearest, low=low, high=high)
    samples = [row.get("block_ms") or () for row in rows]
    return _ratio_of(rows, samples, is_disturbed=is_disturbed)


def _ratio_of(
    rows: tuple[Row, Row],
    samples: Sequence[Samples],
    *,
    is_disturbed: bool = False,
    processor_time: Spread | None = None,
) -> Ratio:
    """By samples that stand for the rows. `processor_time`: how far it may mislead, if they are of
    it.
    """
    numerator, denominator = rows
    at_once = numerator.get("session") is not None and (
        numerator["session"] == denominator.get("session")
    )
    noise = noise_of(numerator)
    together = in_same_blocks(*samples) if at_once else None
    contrast = together or _unpaired(*samples)
    one_process = any(map(of_one_process, rows))
    # Different problems of a run have their turns anyway; one that is there twice was repeated.
    other_run = together is None and not at_once and problem(numerator) == problem(denominator)
    noise_ratio, words = noise.text(
        one_process=one_process, other_run=other_run, disturbed=is_disturbed
    )
    if processor_time is not None:
        noise_ratio = expm1(hypot(log1p(noise_ratio), log1p(processor_time.ratio)))
        words = f"the {rough_percent_text(noise_ratio)} by which processor time may mislead"
    found = partial(
        Ratio,
        paired=together is not None,
        noise=words,
        disturbed=is_disturbed,
        by_processor_time=processor_time is not None,
    )
    if contrast is None:
        return found(value=numerator["latency_ms"] / denominator["latency_ms"], low=nan, high=nan)
    if other_run and noise.between_runs is None:
        noise = replace(noise, between_runs=assumed_spread(ASSUMED_RATIO))
    contrast = noise.in_contrast(
        contrast, one_process=one_process, other_run=other_run, disturbed=is_disturbed
    )
    if processor_time is not None:
        contrast = contrast.with_effect(processor_time)
    interval, tested = contrast.interval(), None
    if together and not noise_ratio and word_of(interval.low, interval.high) == NOT_DECIDED:
        test = contrast.interval(one_sided=True)
        tested = (test.low, test.high)
    return found(
        value=interval.value,
        low=interval.low,
        high=interval.high,
        tested=tested,
        process=None if other_run or processor_time else contrast.process,
    )


def in_same_blocks(numerator: Samples, denominator: Samples) -> Contrast | None:
    """Of one session; None if one of the two was measured again later, and they share no block."""
    try:
        return paired_contrast(numerator, denominator)
    except ValueError:
        return None


def _unpaired(numerator: Samples, denominator: Samples) -> Contrast | None:
    try:
        return unpaired_contrast(numerator, denominator)
    except ValueError:
        return None  # rows without samples


def log_bounds(row: Row) -> tuple[float, float]:
    """How far the latency's interval reaches down and up, on the log scale; NaN without one.

    If the row has one process, as far as processes differ.
    """
    value, low, high = (row.get(f"latency_{name}ms") for name in ("", "low_", "high_"))
    if not value or not low or not high:
        return nan, nan
    ratio = noise_of(row).of_processes(disturbed=disturbed(row)).ratio
    own = log1p(ratio) / 2**0.5 if of_one_process(row) else 0.0
    return hypot(log(value / low), own), hypot(log(high / value), own)


def of_one_process(row: Row) -> bool:
    return sum(any(process) for process in row.get("block_ms") or ()) < 2


def ratio_of_intervals(
    new: Interval, base: Interval, effects: Iterable[float]
) -> tuple[float, float, float]:
    """A ratio and its bounds, of times that have no samples of their own, such as fitted ones.

    `effects`: ratios by which two equal cases differ and which the intervals do not show. All
    errors are independent, as between rows that share no block.
    """
    value = new.value / base.value
    if not all(isfinite(one) and one > 0 for one in (new.low, new.high, base.low, base.high)):
        return value, nan, nan
    others = [log1p(ratio) for ratio in effects]
    down = hypot(log(new.value / new.low), log(base.high / base.value), *others)
    up = hypot(log(new.high / new.value), log(base.value / base.low), *others)
    return value, value / exp(down), value * exp(up)
