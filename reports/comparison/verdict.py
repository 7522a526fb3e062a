"""Whether a case became slower: a verdict from an interval and a margin, with reasons for doubt.

A ratio is new / base, so above 1 is worse. docs/method.md, Comparing, has the rules.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, isfinite, nan, sqrt
from statistics import fmean
from typing import Literal

from ...harness.stats.contrasts import (
    Contrast,
    Spread,
    holm,
    paired_contrast,
    pooled,
    spread,
    unpaired_contrast,
)
from ...harness.stats.intervals import CONFIDENCE, Interval
from ..data.noise_floor import ASSUMED, DISTURBED, NoiseFloor, ProcessNoise
from ..data.run_meta import UNFINISHED
from ..ratio import Noise, in_same_blocks
from ..words import CONFIRMED, NOISY, NOISY_RATIO, NOT_DECIDED, SEEN, Mark, Word, word_of
from ..words import SAME as SAME_MARK
from .case_samples import CaseSamples, disturbances

Metric = Literal["latency", "peak_bytes", "energy_per_call"]
BETTER_WORSE: dict[str, tuple[str, str]] = {
    "latency": ("faster", "slower"),
    "peak_bytes": ("less", "more"),
    "energy_per_call": ("less", "more"),
    "status": ("mended", "broken"),
}
SAME = "same"
ABSENT = "absent"
"""A case that only one side plans: there is nothing to decide."""
DEFAULT_MARGIN = {"latency": 0.03, "peak_bytes": 0.0, "energy_per_call": 0.03}
# Noise never raises a margin above this: a noisier machine must be made quiet first.
MOST_RAISED_RATIO = 0.25
ALPHA = 1 - CONFIDENCE
NO_VALUE = "no value on one side"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How to compare.

    `given`: margins that the user named. `floor`: the A/A noise of this device; twice that raises a
    default margin. `process`: how much processes differ. `turns`: the values are one per run, of so
    many runs (case_samples.merge_runs). `history`: those of base are, by which runs of each case
    differ. `same_run`: both sides are of one run, where rows of one
    session share their blocks. `backends`: two backends, where another status is no change.
    `other_device`: peak bytes are those of another implementation unless both ran one kernel.
    """

    given: Mapping[str, float] = field(default_factory=dict)
    floor: NoiseFloor | None = None
    process: ProcessNoise = ASSUMED
    pairs: Spread | None = None
    turns: int | None = None
    history: bool = False
    same_run: bool = False
    backends: bool = False
    environment_differs: bool = False
    other_device: bool = False

    @property
    def noise(self) -> Noise:
        between_runs = self.floor.between_runs if self.floor and not self.history else None
        return Noise(process=self.process, between_runs=between_runs, pairs=self.pairs)

    def margin_ratio(self, metric: Metric, *, paired: bool) -> float:
        if metric in self.given:
            return self.given[metric]
        if metric == "peak_bytes" or self.floor is None:
            return DEFAULT_MARGIN[metric]
        floor_ratio = self.floor.run_noise_ratio
        if paired and self.turns:
            # The two values of a turn come from two processes; the mean over turns is less noisy.
            floor_ratio /= sqrt(self.turns)
        elif paired:
            floor_ratio = self.floor.paired_noise_ratio
        return max(DEFAULT_MARGIN[metric], min(2 * floor_ratio, MOST_RAISED_RATIO))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseVerdict:
    """The verdict on one metric of one case; numbers are NaN if there are none.

    The metric `status` stands for a case that did not end ok on both sides. `reasons`: keys of
    verdict_text.REASONS, why it is not decided or what limits another verdict.
    """

    metric: str
    verdict: str
    base: CaseSamples | None = None
    new: CaseSamples | None = None
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
    def shown(self) -> CaseSamples:
        """The side that names the case: new, or base if new has no such case."""
        shown = self.new or self.base
        assert shown is not None
        return shown

    @property
    def word(self) -> Word:
        better, worse = BETTER_WORSE[self.metric]
        words: dict[str, Word] = {worse: "more", better: "less", SAME: "same"}
        return words.get(self.verdict, NOT_DECIDED)

    @property
    def worse(self) -> bool:
        return self.word == "more"

    @property
    def better(self) -> bool:
        return self.word == "less"

    @property
    def mark(self) -> Mark | None:
        """How sure the ratio is, as on pages; None without one."""
        if not isfinite(self.ratio) or "other_device" in self.reasons:
            return None
        if self.word != NOT_DECIDED:
            return SAME_MARK if self.word == "same" else CONFIRMED
        disturbed = {"contended", "throttled"} & {*self.reasons}
        near = self.low >= 1 / NOISY_RATIO and self.high <= NOISY_RATIO
        clear = self.low > 1 or self.high < 1
        return SEEN if (near or clear) and not disturbed else NOISY

    @property
    def said(self) -> str:
        """The verdict, and for what is not decided how sure it is."""
        if self.verdict != NOT_DECIDED:
            return self.verdict
        return self.mark.words if self.mark else NOT_DECIDED if self.measured else NO_VALUE

    @property
    def measured(self) -> bool:
        """Both sides have the value."""
        return self.metric != "status" and "missing" not in self.reasons


def case_verdicts(
    pairs: Iterable[tuple[CaseSamples | None, CaseSamples | None]], rules: Rules
) -> list[CaseVerdict]:
    """The verdicts on each (base, new); None stands for a side without this case."""
    return _holm([verdict for base, new in pairs for verdict in _verdicts(base, new, rules)])


def geometric_mean(verdicts: Iterable[CaseVerdict]) -> Interval | None:
    """Of the latency ratios, whose number is `units`; None if no case has one.

    No bounds (NaN) unless the cases share their processes.
    """
    latencies = [one for one in verdicts if one.metric == "latency" and one.contrast is not None]
    contrasts = [one.contrast for one in latencies if one.contrast is not None]
    if not contrasts:
        return None
    known = not any("between_runs" in one.reasons for one in latencies)
    shared = pooled(contrasts) if known else None
    bounds = (shared.interval().low, shared.interval().high) if shared else (nan, nan)
    value = exp(fmean(one.log_ratio for one in contrasts))
    return Interval(value=value, low=bounds[0], high=bounds[1], units=len(contrasts))


def verdict_of(low: float, high: float, margin_ratio: float, metric: str) -> str:
    """Better or worse if the interval lies beyond the margin, same within it, else not decided."""
    better, worse = BETTER_WORSE[metric]
    word = word_of(low, high, margin_ratio)
    return {"more": worse, "less": better, "same": SAME}.get(word, NOT_DECIDED)


def _verdicts(base: CaseSamples | None, new: CaseSamples | None, rules: Rules) -> list[CaseVerdict]:
    if base is None or new is None or not (base.ok and new.ok):
        return [_status(base, new, rules)]
    found = []
    ways = {"latency": _latency, "peak_bytes": peak_verdict, "energy_per_call": _energy}
    for metric, judged in ways.items():
        if metric in base.measured:
            missing = CaseVerdict(
                metric=metric, base=base, new=new, verdict=NOT_DECIDED, reasons=("missing",)
            )
            found.append(judged(base, new, rules) if metric in new.measured else missing)
    # one backend was measured on inputs in two orders: by an earlier version, and now
    other_inputs = base.backend == new.backend and base.input_order != new.input_order
    return [_inputs_differ(one) for one in found] if other_inputs else found


def _inputs_differ(found: CaseVerdict) -> CaseVerdict:
    """Not decided, and counted in no mean: the two did not do the same work."""
    reasons = ("inputs_differ", *found.reasons)
    return replace(found, verdict=NOT_DECIDED, reasons=reasons, p_value=nan, contrast=None)


def _status(base: CaseSamples | None, new: CaseSamples | None, rules: Rules) -> CaseVerdict:
    """A case that fails now is worse, whatever its speed was; one not reached is not decided."""
    better, worse = BETTER_WORSE["status"]
    verdict: str = NOT_DECIDED
    reasons: tuple[str, ...] = ("status_differs",)
    if base is None or new is None:
        verdict, reasons = ABSENT, ()
    elif base.status in UNFINISHED or new.status in UNFINISHED:
        reasons = ("missing",)
    elif base.status == new.status:
        verdict, reasons = SAME, ()
    elif not rules.backends and (base.ok or new.ok):
        verdict = worse if base.ok else better
    return CaseVerdict(metric="status", base=base, new=new, verdict=verdict, reasons=reasons)


def _latency(base: CaseSamples, new: CaseSamples, rules: Rules) -> CaseVerdict:
    apart = unpaired_contrast(new.block_ms, base.block_ms)
    shapes = [[len(process) for process in case.block_ms] for case in (base, new)]
    # In two folders, equal sessions of other blocks are no longer the same blocks.
    share_blocks = base.block_ms == new.block_ms or (
        _same_session(base, new) and (rules.same_run or shapes[0] == shapes[1])
    )
    together = in_same_blocks(new.block_ms, base.block_ms) if share_blocks else None
    found = _estimated("latency", base, new, apart, together, rules)
    reasons = list(found.reasons)
    verdict = found.verdict
    if found.worse or found.better:
        slow, fast = (new, base) if found.worse else (base, new)
        if disturbed := disturbances(slow, fast, paired=found.paired):
            reasons += disturbed
            found = _allowing_for_other_work(found)
            if "one_process" in reasons or disturbed != ["contended"] or found.word == NOT_DECIDED:
                verdict = NOT_DECIDED
    if together is None and rules.same_run:
        reasons.append("unpaired")
    return replace(found, verdict=verdict, reasons=tuple(reasons))


def _allowing_for_other_work(found: CaseVerdict) -> CaseVerdict:
    """With what other work may do to one side alone."""
    assert found.contrast is not None
    contrast = found.contrast.with_effect(DISTURBED)
    interval = contrast.interval()
    return replace(
        found,
        verdict=verdict_of(interval.low, interval.high, found.margin_ratio, found.metric),
        low=interval.low,
        high=interval.high,
        p_value=contrast.p_beyond(found.margin_ratio),
    )


def _energy(base: CaseSamples, new: CaseSamples, rules: Rules) -> CaseVerdict:
    turns = rules.turns and len(base.energy_j) == len(new.energy_j)
    together = None
    if turns or base.energy_j == new.energy_j:
        together = paired_contrast(new.energy_j, base.energy_j)
    apart = unpaired_contrast(new.energy_j, base.energy_j)
    return _estimated("energy_per_call", base, new, apart, together, rules)


def peak_verdict(base: CaseSamples, new: CaseSamples, rules: Rules) -> CaseVerdict:
    """Bytes are exact, so the ratio has no interval. What both keep between calls counts."""
    before, now = base.peak_bytes, new.peak_bytes
    assert before is not None
    assert now is not None
    if base.workspace_bytes is not None and new.workspace_bytes is not None:
        before, now = before + base.workspace_bytes, now + new.workspace_bytes
    ratio = now / before if before > 0 else inf if now else 1.0
    margin_ratio = rules.margin_ratio("peak_bytes", paired=True)
    verdict = verdict_of(ratio, ratio, margin_ratio, "peak_bytes")
    verdict = verdict if isfinite(ratio) else BETTER_WORSE["peak_bytes"][1]
    is_apart = rules.other_device and not (base.kernel and base.kernel == new.kernel)
    return CaseVerdict(
        metric="peak_bytes",
        base=base,
        new=new,
        verdict=NOT_DECIDED if is_apart else verdict,
        reasons=("other_device",) if is_apart else (),
        base_value=before,
        new_value=now,
        ratio=ratio,
        low=ratio,
        high=ratio,
        margin_ratio=margin_ratio,
        paired=True,
    )


def _estimated(
    metric: Metric,
    base: CaseSamples,
    new: CaseSamples,
    apart: Contrast,
    together: Contrast | None,
    rules: Rules,
) -> CaseVerdict:
    """`apart` gives each side's value, and the ratio unless the two were measured `together`."""
    copied = base.block_ms == new.block_ms and base.energy_j == new.energy_j
    one_process = bool(apart.reason) and not copied and not rules.history
    other_run = together is None and not (rules.same_run and _same_session(base, new))
    unknown = other_run and rules.noise.between_runs is None and not rules.history
    paired = together is not None
    with_runs, without = (
        noise.in_contrast(
            together or apart,
            one_process=one_process,
            other_run=other_run,
            disturbed=base.disturbed or new.disturbed,
        )
        for noise in (rules.noise, replace(rules.noise, between_runs=None))
    )
    contrast = with_runs
    if rules.history and (learnt := spread([apart.denominator])):
        contrast = contrast.with_effect(_of_new(learnt, len(apart.denominator)))
    interval, margin_ratio = contrast.interval(), rules.margin_ratio(metric, paired=paired)
    verdict, reasons = verdict_of(interval.low, interval.high, margin_ratio, metric), []
    if unknown:
        verdict, reasons = NOT_DECIDED, ["between_runs"]
    elif verdict == NOT_DECIDED and with_runs != without and _decides(without, margin_ratio):
        reasons.append("runs_differ")
    elif verdict == NOT_DECIDED and not one_process:
        reasons.append("interval_wide")
    if one_process:
        reasons.append("one_process")
    if rules.environment_differs and not paired and verdict != SAME:
        reasons.append("environment_differs")
    return CaseVerdict(
        metric=metric,
        base=base,
        new=new,
        verdict=verdict,
        reasons=tuple(reasons),
        base_value=exp(apart.centre(apart.denominator)),
        new_value=exp(apart.centre(apart.numerator)),
        ratio=interval.value,
        low=interval.low,
        high=interval.high,
        margin_ratio=margin_ratio,
        paired=paired,
        p_value=nan if unknown else contrast.p_beyond(margin_ratio),
        contrast=contrast,
    )


def _decides(contrast: Contrast, margin_ratio: float) -> bool:
    interval = contrast.interval()
    return word_of(interval.low, interval.high, margin_ratio) != NOT_DECIDED


def _of_new(learnt: Spread, runs: int) -> Spread:
    """What a new run draws once more of what these runs differ by. As one estimate gives it and the
    error of their mean, both together have the degrees of freedom of that (Satterthwaite).
    """
    return Spread(sd=learnt.sd / sqrt(2), degrees=learnt.degrees / (1 + 2 / runs))


def _same_session(base: CaseSamples, new: CaseSamples) -> bool:
    return base.session is not None and base.session == new.session


def _holm(verdicts: Sequence[CaseVerdict]) -> list[CaseVerdict]:
    """Verdicts that are not clear enough among all comparisons of their metric are not decided."""
    checked = list(verdicts)
    for metric in BETTER_WORSE:
        places = [
            place
            for place, one in enumerate(checked)
            if one.metric == metric and isfinite(one.p_value)
        ]
        p_values = holm([checked[place].p_value for place in places])
        for place, p_value in zip(places, p_values, strict=True):
            one = checked[place]
            if (one.worse or one.better) and p_value > ALPHA and len(places) > 1:
                reasons = (*one.reasons, "many_claims")
                checked[place] = replace(one, verdict=NOT_DECIDED, reasons=reasons)
    return checked
