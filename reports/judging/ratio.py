"""A ratio of two cases: its interval, its mark, how it writes itself, and what the interval allows
for beside the samples: how much processes and runs of a device differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, hypot, inf, log1p, nan, nextafter
from typing import NamedTuple

from ...harness.files.printable import visible
from ...harness.stats.contrasts import MANY, Contrast, Spread, assumed_spread
from ..data.noise_floor import ASSUMED, ASSUMED_RATIO, ProcessNoise, assumed_noise, differ
from ..data.row_groups import Row, once
from ..formatting import (
    number_text,
    ratio_bounds_text,
    ratio_range_text,
    rough_percent_text,
    times_text,
)
from ..words import BY_PROCESSOR_TIME, CONFIRMED, NOT_DECIDED, SAME, SAME_RATIO, Mark, Word, mark_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio with its 95 % interval (NaN without one), and how sure it is that it is not 1.

    `paired`: measured in the same blocks, so drift cancels. `noise`: what the interval allows for
    because the rows do not show it, such as `the 12 % that processes differ on this machine`; "" if
    nothing. `doubts`: its codes (method_appendix.md, Reason codes). `by_processor_time`: of calls,
    because other work disturbed their time by the clock. `by_way_of`: the baseline of a ratio of
    ratios, which was measured in the blocks of either; else "". `contrast`: the units, where both
    have samples. `margin_ratio`: within it, the two count as the same; 0.05 for 5 %.
    """

    value: float
    low: float
    high: float
    paired: bool
    noise: str = ""
    doubts: tuple[str, ...] = ()
    by_processor_time: bool = False
    by_way_of: str = ""
    contrast: Contrast | None = None
    margin_ratio: float = SAME_RATIO

    @property
    def mark(self) -> Mark:
        """By the interval alone: within the margin; without 1; wider than a factor of 2; else seen
        and not confirmed.
        """
        return mark_of(self.low, self.high, self.margin_ratio)

    @property
    def word(self) -> Word:
        """More or less if that is confirmed, or the same."""
        if self.mark == CONFIRMED:
            return "more" if self.value > 1 else "less"
        return "same" if self.mark == SAME else NOT_DECIDED

    @property
    def is_decided(self) -> bool:
        return self.word != NOT_DECIDED

    @property
    def process(self) -> Spread | None:
        """How far the ratio of one process may be off; None if a plan of more would not tell more:
        other runs, processor times.
        """
        elsewhere = self.by_processor_time or {"between_runs", "runs_differ"} & set(self.doubts)
        return None if self.contrast is None or elsewhere else self.contrast.process

    @property
    def indirect(self) -> bool:
        """A ratio of ratios."""
        return bool(self.by_way_of)

    @property
    def way(self) -> str:
        """`by way of sdpa`; "" if it is not indirect."""
        return f"by way of {visible(self.by_way_of)}" if self.indirect else ""

    @property
    def said(self) -> str:
        """In a sentence: more, less or the same, else how sure it is."""
        return self.word if self.is_decided else self.mark.words

    @property
    def disturbed(self) -> bool:
        """Nothing but the clock tells, which other work disturbed."""
        return "contended" in self.doubts and not self.by_processor_time

    @property
    def is_busy(self) -> bool:
        """Other work disturbed the times, so that a quiet machine would tell more."""
        return "contended" in self.doubts

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
        return f", which allows for {self.noise}" if self.noise and not self.is_decided else ""

    @property
    def _how(self) -> str:
        how = f", {BY_PROCESSOR_TIME}" if self.by_processor_time else ""
        how += f", {self.way}" if self.indirect else ""
        return how + ("" if self.paired else ", unpaired")


def exact_ratio(numerator: float, denominator: float, margin_ratio: float = 0.0) -> Ratio:
    """Of counts, such as bytes, which have no noise."""
    grown = inf if numerator else 1.0
    ratio = count_ratio(numerator, denominator) if denominator > 0 else grown
    return Ratio(value=ratio, low=ratio, high=ratio, paired=True, margin_ratio=margin_ratio)


def count_ratio(count: float | None, base: float | None) -> float:
    """NaN without both. Whole if and only if the base goes into the count, which integers decide:
    of 2^53 + 1 over 2^53 the nearest float is 1.
    """
    if count is None or not base:
        return nan
    ratio = count / base
    if count % base and ratio.is_integer():  # rounded
        return nextafter(ratio, inf if count > int(ratio) * base else 0.0)
    return ratio


def summed(parts: Sequence[Ratio], weights: Sequence[float]) -> Ratio:
    """Of sums over one case: the parts' ratios, weighted by their share of that. The bounds are as
    if all were off to the same side.
    """
    value, low, high = (
        sum(share * getattr(part, name) for share, part in zip(weights, parts, strict=True))
        for name in ("value", "low", "high")
    )
    return Ratio(
        value=value,
        low=low,
        high=high,
        paired=all(part.paired for part in parts),
        noise=next((part.noise for part in parts if part.noise), ""),
        doubts=tuple(dict.fromkeys(doubt for part in parts for doubt in part.doubts)),
        by_processor_time=any(part.by_processor_time for part in parts),
        by_way_of=next((part.by_way_of for part in parts if part.indirect), ""),
    )


# ---- what its interval allows for ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What the samples of two cases do not show: how much processes and runs differ on the device.

    `between_runs`: None if that is not known. `pairs`: how much the ratio of two cases of the same
    blocks differs from process to process, learnt from all pairs of a run.
    """

    process: ProcessNoise = ASSUMED
    between_runs: Spread | None = None
    pairs: Spread | None = None


class Allowance(NamedTuple):
    """What an interval allows for beside its samples. `doubt`: its code. `words`: what differs by
    so much: `processes differ on this machine`. `spread`: None if another one has it already.
    """

    spread: Spread | None
    doubt: str
    words: str


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


def one_process(noise: Noise) -> Allowance:
    """How much one process of a case differs from that of another."""
    source = noise.process.source
    return Allowance(noise.process.spread, "one_process", f"processes {differ(source)}")


def between_runs(noise: Noise) -> Allowance:
    """How much two runs differ that were measured at different times; assumed if not known."""
    known = noise.between_runs is not None
    words = f"separate measurements {differ('' if known else 'assumed')}"
    runs = noise.between_runs or assumed_spread(ASSUMED_RATIO)
    return Allowance(runs, "runs_differ" if known else "between_runs", words)


def words_of(allowed: Sequence[Allowance]) -> str:
    """`the 12 % that processes differ on this machine`: all of it, named by what is most."""
    known = [(one.spread.ratio, one.words) for one in allowed if one.spread]
    if not known:
        return ""
    ratio = expm1(hypot(*(log1p(one) for one, _ in known)))
    return f"the {rough_percent_text(ratio)} that {max(known)[1]}"
