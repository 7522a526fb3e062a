"""Whether a case became slower: a verdict from an interval and a margin, with short codes for what
speaks against a claim.

A ratio is new / base, so above 1 is worse. docs/method.md, Comparing, has the rules.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, isfinite, log, nan
from statistics import fmean
from typing import Literal

from ...harness.stats import CONFIDENCE, Contrast, holm, paired_contrast, pooled, unpaired_contrast
from .case_samples import UNFINISHED, Side

Metric = Literal["latency", "peak_bytes", "energy_per_call"]
WORDS: dict[str, tuple[str, str]] = {
    "latency": ("faster", "slower"),
    "peak_bytes": ("less", "more"),
    "energy_per_call": ("less", "more"),
    "status": ("mended", "broken"),
}
"""What better and worse are called."""
SAME, UNDECIDED = "same", "undecided"
CODES = {
    "interval_wide": "the interval is too wide for the margin",
    "one_process": "one process: run-to-run variation is not included",
    "clocks_differ": "the slower side ran at a lower clock",
    "environment_differs": "machine, versions or settings differ",
    "throttled": "the slower side was held back in most blocks",
    "contended": "other work wanted the cores in most blocks of the slower side",
    "unpaired": "not measured in the same blocks",
    "status_differs": "the two ended in different ways",
    "missing": "one of the two has no such value",
    "many_claims": "not clear enough among so many comparisons (Holm)",
}
DEFAULT_MARGIN = {"latency": 0.03, "peak_bytes": 0.0, "energy_per_call": 0.03}
# a machine that is noisier must be made quiet: within more than this nothing is "the same"
MOST_RAISED_RATIO = 0.25
CLOCK_STEP_RATIO = 0.02  # a GPU's clock moves in steps of about 1 %
ALPHA = 1 - CONFIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How to judge. `given`: margins that the user named, used as given. The floors are A/A noise,
    whose double raises default margins.

    `same_run`: both sides are of one run, where rows of one session share their blocks. `backends`:
    two backends of it, where another status is no change. `own_processes`: two environments of it:
    drift cancels, but what differs from process to process does not. `in_turns`: one value per run
    (turns.py).
    """

    given: Mapping[str, float] = field(default_factory=dict)
    paired_floor_ratio: float = 0.0
    unpaired_floor_ratio: float = 0.0
    same_run: bool = False
    backends: bool = False
    own_processes: bool = False
    in_turns: bool = False
    environment_differs: bool = False

    def margin_ratio(self, metric: Metric, *, paired: bool) -> float:
        if metric in self.given:
            return self.given[metric]
        floor_ratio = (
            self.paired_floor_ratio
            if paired and not self.own_processes
            else self.unpaired_floor_ratio
        )
        return (
            DEFAULT_MARGIN[metric]
            if metric == "peak_bytes"
            else max(DEFAULT_MARGIN[metric], min(2 * floor_ratio, MOST_RAISED_RATIO))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One case and one metric of it, judged. `status` as metric: the two did not both end well, so
    there is no number to compare.

    NaN where there is no number. `reasons`: why it is undecided, or what to know beside another
    verdict.
    """

    metric: str
    base: Side | None
    new: Side | None
    verdict: str
    reasons: tuple[str, ...] = ()
    base_value: float = nan
    new_value: float = nan
    ratio: float = nan
    low: float = nan
    high: float = nan
    margin_ratio: float = nan
    paired: bool = False
    p_value: float = nan
    contrast: Contrast | None = None

    @property
    def shown(self) -> Side:
        """The side that names the case."""
        side = self.new or self.base
        assert side is not None
        return side

    @property
    def worse(self) -> bool:
        return self.verdict == WORDS[self.metric][1]

    @property
    def better(self) -> bool:
        return self.verdict == WORDS[self.metric][0]

    @property
    def measured(self) -> bool:
        """Both sides have the value."""
        return self.metric != "status" and "missing" not in self.reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricMean:
    """Of the latency ratios of some cases; NaN bounds where the cases do not share their
    processes.
    """

    ratio: float
    low: float
    high: float
    cases: int


def judge(pairs: Iterable[tuple[Side | None, Side | None]], terms: Terms) -> list[Finding]:
    """What is to be said of each (base, new), None where a side has no such case."""
    return _many([finding for base, new in pairs for finding in _findings(base, new, terms)])


def geometric_mean(findings: Iterable[Finding]) -> GeometricMean | None:
    """None where no case has a ratio."""
    contrasts = [
        found.contrast
        for found in findings
        if found.metric == "latency" and found.contrast is not None
    ]
    if not contrasts:
        return None
    shared = pooled(contrasts)
    interval = shared.interval() if shared else None
    ratio = exp(fmean(one.log_ratio for one in contrasts))
    return GeometricMean(
        ratio=ratio,
        low=interval.low if interval else nan,
        high=interval.high if interval else nan,
        cases=len(contrasts),
    )


def verdict_of(low: float, high: float, margin_ratio: float, words: tuple[str, str]) -> str:
    """The rule: clearly beyond the margin, wholly within it, or undecided; undecided without an
    interval.
    """
    better, worse = words
    if not (isfinite(low) and isfinite(high)):
        return UNDECIDED
    if low > 1 + margin_ratio:
        return worse
    if high < 1 / (1 + margin_ratio):
        return better
    return SAME if low >= 1 / (1 + margin_ratio) and high <= 1 + margin_ratio else UNDECIDED


def _findings(base: Side | None, new: Side | None, terms: Terms) -> list[Finding]:
    if base is None or new is None or not (base.ok and new.ok):
        return [_status(base, new, terms)]
    found = [_latency(base, new, terms)] if _count(base.block_ms) else []
    if base.peak_bytes is not None:
        found.append(_peak(base, new, base.peak_bytes, terms))
    if base.energy_j:
        found.append(_energy(base, new, terms))
    return found


def _status(base: Side | None, new: Side | None, terms: Terms) -> Finding:
    """A case that fails now has become worse, whatever its speed was; one that was not reached says
    nothing.
    """
    better, worse = WORDS["status"]
    verdict = UNDECIDED
    reasons: tuple[str, ...] = ("status_differs",)
    if base is None or new is None or base.status in UNFINISHED or new.status in UNFINISHED:
        reasons = ("missing",)
    elif base.status == new.status:
        verdict, reasons = SAME, ()
    elif not terms.backends and (base.ok or new.ok):
        verdict = worse if base.ok else better
    return Finding(metric="status", base=base, new=new, verdict=verdict, reasons=reasons)


def _latency(base: Side, new: Side, terms: Terms) -> Finding:
    if not _count(new.block_ms):
        return Finding(
            metric="latency", base=base, new=new, verdict=UNDECIDED, reasons=("missing",)
        )
    apart = unpaired_contrast(new.block_ms, base.block_ms)
    together = _together(base, new, same_run=terms.same_run)
    found = _estimated("latency", base, new, apart, together, terms)
    reasons = list(found.reasons)
    verdict = found.verdict
    if together is None and (found.worse or found.better):
        slow, fast = (new, base) if found.worse else (base, new)
        if disturbed := _disturbances(slow, fast):
            verdict, reasons = UNDECIDED, [*reasons, *disturbed]
    if together is None and terms.same_run:
        reasons.append("unpaired")
    return replace(found, verdict=verdict, reasons=tuple(reasons))


def _energy(base: Side, new: Side, terms: Terms) -> Finding:
    if not new.energy_j:
        return Finding(
            metric="energy_per_call", base=base, new=new, verdict=UNDECIDED, reasons=("missing",)
        )
    alike = base.energy_j == new.energy_j or (
        terms.in_turns and len(base.energy_j) == len(new.energy_j)
    )
    together = paired_contrast(new.energy_j, base.energy_j) if alike else None
    return _estimated(
        "energy_per_call",
        base,
        new,
        unpaired_contrast(new.energy_j, base.energy_j),
        together,
        terms,
    )


def _peak(base: Side, new: Side, before: int, terms: Terms) -> Finding:
    """Bytes are counted, so there is nothing to estimate."""
    now = new.peak_bytes
    if now is None:
        return Finding(
            metric="peak_bytes", base=base, new=new, verdict=UNDECIDED, reasons=("missing",)
        )
    ratio = 1.0 if before == now else now / before if before > 0 else inf if now > before else 0.0
    margin_ratio = terms.margin_ratio("peak_bytes", paired=True)
    better, worse = WORDS["peak_bytes"]
    verdict = (
        worse if ratio > 1 + margin_ratio else better if ratio < 1 / (1 + margin_ratio) else SAME
    )
    return Finding(
        metric="peak_bytes",
        base=base,
        new=new,
        verdict=verdict,
        base_value=before,
        new_value=now,
        ratio=ratio,
        low=ratio,
        high=ratio,
        margin_ratio=margin_ratio,
        paired=True,
    )


def _estimated(
    metric: Metric, base: Side, new: Side, apart: Contrast, together: Contrast | None, terms: Terms
) -> Finding:
    """`apart` gives the values of each side, and the ratio too where the two were not measured
    `together`.
    """
    contrast, paired = together or apart, together is not None
    interval, margin_ratio = contrast.interval(), terms.margin_ratio(metric, paired=paired)
    verdict, reasons = verdict_of(interval.low, interval.high, margin_ratio, WORDS[metric]), []
    # Between runs, or environments, of one process each the interval lacks what differs from
    # process to process.
    certain = (paired and not terms.own_processes) or not apart.reason
    if not certain:
        verdict = UNDECIDED
    if certain and verdict == UNDECIDED:
        reasons.append("interval_wide")
    if apart.reason and contrast.log_ratio != 0:
        reasons.append("one_process")
    if terms.environment_differs and not paired and verdict != SAME:
        reasons.append("environment_differs")
    return Finding(
        metric=metric,
        base=base,
        new=new,
        verdict=verdict,
        reasons=tuple(reasons),
        base_value=exp(fmean(apart.denominator)),
        new_value=exp(fmean(apart.numerator)),
        ratio=interval.value,
        low=interval.low,
        high=interval.high,
        margin_ratio=margin_ratio,
        paired=paired,
        p_value=contrast.p_beyond(margin_ratio) if certain else nan,
        contrast=contrast,
    )


def _together(base: Side, new: Side, *, same_run: bool) -> Contrast | None:
    """Paired where both come from the same blocks: of one run by session, of two folders also by
    equal numbers of blocks.
    """
    shapes = [[len(process) for process in side.block_ms] for side in (base, new)]
    same_session = base.session is not None and base.session == new.session
    if base.block_ms != new.block_ms and not (
        same_session and (same_run or shapes[0] == shapes[1])
    ):
        return None
    try:
        return paired_contrast(new.block_ms, base.block_ms)
    except ValueError:
        return None  # equal sessions, but one of the two was measured again later


def _disturbances(slow: Side, fast: Side) -> list[str]:
    """What alone could have made the slow side slow."""
    codes = ["contended"] if 2 * slow.contended_blocks > slow.blocks else []
    codes += ["throttled"] if 2 * slow.throttled_blocks > slow.blocks else []
    if (
        slow.clock_mhz
        and fast.clock_mhz
        and log(fast.clock_mhz / slow.clock_mhz) > CLOCK_STEP_RATIO
    ):
        codes.append("clocks_differ")
    return codes


def _many(findings: Sequence[Finding]) -> list[Finding]:
    """Claims that are not clear enough among all comparisons of their metric become undecided."""
    judged = list(findings)
    for metric in WORDS:
        places = [
            place
            for place, found in enumerate(judged)
            if found.metric == metric and isfinite(found.p_value)
        ]
        for place, p_value in zip(
            places, holm([judged[place].p_value for place in places]), strict=True
        ):
            found = judged[place]
            if (found.worse or found.better) and p_value > ALPHA and len(places) > 1:
                judged[place] = replace(
                    found, verdict=UNDECIDED, reasons=(*found.reasons, "many_claims")
                )
    return judged


def _count(samples: Sequence[Sequence[Sequence[float]]]) -> int:
    return sum(bool(block) for process in samples for block in process)
