"""What became of a case: its time, energy, bytes and status on two sides, by the one judge.

A ratio is new / base, so above 1 is worse. docs/method.md, Comparing, has the rules.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Literal, NamedTuple

from ...harness.files.errors import BadInput, option
from ...harness.stats.intervals import latency_interval
from ..data.row_groups import Row
from ..data.run_meta import UNFINISHED
from ..judging.over import beyond
from ..judging.pair import energies, energy_ratio, time_ratio
from ..judging.ratio import Ratio, exact_ratio
from ..words import NOISY, NOT_DECIDED, SAME_RATIO, Mark


class Metric(NamedTuple):
    """What is judged of a case, and the words of its verdicts. `quantity`: in facts."""

    title: str
    better: str
    worse: str
    unit: str | None = None
    quantity: str = "status"


MEASURED = ("latency", "peak_bytes", "energy_per_call")
METRICS = {
    "latency": Metric("time", "faster", "slower", "ms", "latency_ms"),
    "peak_bytes": Metric("peak memory", "less", "more", "bytes", "peak_bytes"),
    "energy_per_call": Metric("energy per call", "less", "more", "J", "energy_per_call_j"),
    "status": Metric("status", "mended", "broken"),
}
"""`status` stands for a case that did not end ok on both sides."""
SAME = "same"
ABSENT = "absent"
"""A case that only one side plans: there is nothing to decide."""
NO_VALUE = "no value on one side"
APART = {"inputs_differ", "other_device"}
"""Reasons for which a ratio has no mark, as the two sides did not do the same work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is compared, and how.

    `margin_ratio`: times and energies within it are the same. `turns`: a unit of a row stands for a
    run, of so many. `history`: one of base does. `baseline`: the backend that the others of one run
    are compared with, where another status is no change. `other_device`: peak bytes are those of
    another implementation unless both ran one kernel.
    """

    margin_ratio: float = SAME_RATIO
    turns: int | None = None
    history: bool = False
    baseline: str | None = None
    environment_differs: bool = False
    other_device: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseVerdict:
    """What is known of one metric of one case. `base`, `new`: rows, None of a side that plans no
    such case.

    `ended`: what became of it where there is no mark. `reasons`: keys of words.REASONS, why it is
    not decided or what limits it.
    """

    metric: str
    base: Row | None = None
    new: Row | None = None
    ratio: Ratio | None = None
    ended: str = NOT_DECIDED
    reasons: tuple[str, ...] = ()
    base_value: float = nan
    new_value: float = nan

    @property
    def shown(self) -> Row:
        """The side that names the case: new, or base if new has no such case."""
        shown = self.new or self.base
        assert shown is not None
        return shown

    @property
    def mark(self) -> Mark | None:
        """How sure the ratio is; None without one."""
        return None if self.ratio is None or APART & {*self.reasons} else self.ratio.mark

    @property
    def verdict(self) -> str:
        """`slower`, `same`, `not decided`, as the mark says; or how the case ended."""
        if self.ratio is None or self.mark is None:
            return self.ended
        of = METRICS[self.metric]
        return {"more": of.worse, "less": of.better}.get(self.ratio.word, self.ratio.word)

    @property
    def worse(self) -> bool:
        return self.verdict == METRICS[self.metric].worse

    @property
    def better(self) -> bool:
        return self.verdict == METRICS[self.metric].better

    @property
    def said(self) -> str:
        """The verdict, and for what is not decided how sure it is."""
        if self.verdict != NOT_DECIDED:
            return self.verdict
        return self.mark.words if self.mark else NOT_DECIDED if self.measured else NO_VALUE

    @property
    def measured(self) -> bool:
        """Both sides have the value."""
        return self.ratio is not None


def case_verdicts(
    pairs: Iterable[tuple[Row | None, Row | None]], rules: Rules
) -> list[CaseVerdict]:
    """The verdicts on each (base, new); None stands for a side without this case."""
    return [verdict for base, new in pairs for verdict in _verdicts(base, new, rules)]


def _verdicts(base: Row | None, new: Row | None, rules: Rules) -> Iterator[CaseVerdict]:
    if base is None or new is None or base["status"] != "ok" or new["status"] != "ok":
        yield _status(base, new, rules)
        return
    # one backend was measured on inputs in two orders: by an earlier version, and now
    order = {row.get("input_order") or "heads" for row in (base, new)}
    apart = base["backend"] == new["backend"] and len(order) > 1
    for metric in MEASURED:
        if value_of(base, metric) is not None:
            found = _judged(metric, base, new, rules)
            yield replace(found, reasons=("inputs_differ", *found.reasons)) if apart else found


def value_of(row: Row, metric: str) -> float | None:
    """Of a row that ended ok, in ms, bytes or J; None if it was not measured."""
    if metric == "peak_bytes":
        peak: int | None = row.get("peak_bytes")
        return peak
    samples = energies(row) if metric == "energy_per_call" else row.get("block_ms") or ()
    return latency_interval(samples).value if any(map(any, samples)) else None


def _status(base: Row | None, new: Row | None, rules: Rules) -> CaseVerdict:
    """A case that fails now is worse, whatever its speed was; one not reached is not decided."""
    of = METRICS["status"]
    ended: str = NOT_DECIDED
    reasons: tuple[str, ...] = ("status_differs",)
    if base is None or new is None:
        ended, reasons = ABSENT, ()
    elif {base["status"], new["status"]} & {*UNFINISHED}:
        reasons = ("missing",)
    elif base["status"] == new["status"]:
        ended, reasons = SAME, ()
    elif not rules.baseline and "ok" in (base["status"], new["status"]):
        ended = of.worse if base["status"] == "ok" else of.better
    return CaseVerdict(metric="status", base=base, new=new, ended=ended, reasons=reasons)


def _judged(metric: str, base: Row, new: Row, rules: Rules) -> CaseVerdict:
    before, now = value_of(base, metric), value_of(new, metric)
    if metric == "peak_bytes":
        ratio, before, now = _bytes_ratio(base, new)
        same_kernel = base["kernel"] and base["kernel"] == new["kernel"]
        reasons = ["other_device"] if rules.other_device and not same_kernel else []
    else:
        ratio = time_ratio(new, base) if metric == "latency" else energy_ratio(new, base)
        ratio = ratio and replace(ratio, margin_ratio=rules.margin_ratio)
        reasons = [*_doubts(ratio, rules)] if ratio else []
    return CaseVerdict(
        metric=metric,
        base=base,
        new=new,
        ratio=ratio,
        reasons=tuple(reasons) if ratio else ("missing",),
        base_value=nan if before is None or ratio is None else before,
        new_value=nan if now is None or ratio is None else now,
    )


def _bytes_ratio(base: Row, new: Row) -> tuple[Ratio | None, int | None, int | None]:
    """With the bytes of both. They are exact, so it has no interval; what both keep between calls
    counts.
    """
    before, now = base.get("peak_bytes"), new.get("peak_bytes")
    kept = [row.get("workspace_bytes") for row in (base, new)]
    if before is None or now is None:
        return None, before, now
    if None not in kept:
        before, now = before + kept[0], now + kept[1]
    return exact_ratio(now, before), before, now


def _doubts(ratio: Ratio, rules: Rules) -> Iterator[str]:
    yield from ratio.doubts
    if not ratio.is_decided and not ratio.doubts:
        yield "interval_wide"
    if rules.baseline and not ratio.paired:
        yield "unpaired"
    if ratio.indirect:
        yield "indirect"
    if rules.environment_differs and not ratio.paired and ratio.word != SAME:
        yield "environment_differs"


# ---- the gate ------------------------------------------------------------------------------------


Outcome = Literal["passed", "failed", "nothing decided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What fails a comparison.

    `margins`: metric -> the largest harmless change as a ratio, 0.05 for 5 %; None: what noise
    explains is harmless too, so that only what is too noisy stays open.
    """

    margins: Mapping[str, float | None]
    fail_on_undecided: bool = False

    def margin_ratio(self, metric: str, usual_ratio: float) -> float:
        known = self.margins[metric]
        return known if known is not None else 0.0 if metric == "peak_bytes" else usual_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A gated metric that decided nothing. `reasons`: how often each kept it from that."""

    metric: str
    cases: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """`regressions`: cases that are worse by more than the margin, or broken. `undecided`: those of
    which neither that nor the opposite is known, and for which base has a value.

    `idle`: the gated metrics that are not decided in any case. `absent`: cases that only one side
    has, which do not count. `comparisons`: how many pairs Holm's rule was applied to.
    """

    gate: Gate
    regressions: tuple[CaseVerdict, ...]
    undecided: tuple[CaseVerdict, ...]
    idle: tuple[Idle, ...] = ()
    absent: tuple[CaseVerdict, ...] = ()
    comparisons: int = 0

    @property
    def outcome(self) -> Outcome:
        if self.regressions or (self.gate.fail_on_undecided and self.undecided):
            return "failed"
        return "nothing decided" if self.idle else "passed"

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


def apply(
    gate: Gate, verdicts: Iterable[CaseVerdict], usual_ratio: float = SAME_RATIO
) -> GateResult:
    """Which cases fail the gate; broken ones always do.

    Raises BadInput if no case has a gated metric on both sides.
    """
    every = list(verdicts)
    ended = [one for one in every if one.metric == "status"]
    worse = [one for one in ended if one.worse]
    undecided = [one for one in ended if one.verdict == NOT_DECIDED]
    idle, comparisons = [], 0
    for metric in gate.margins:
        some = [one for one in every if one.metric == metric]
        by_noise = gate.margins[metric] is None
        margin_ratio = gate.margin_ratio(metric, usual_ratio)
        found, left, compared = _of_metric(some, margin_ratio, by_noise=by_noise)
        worse, undecided, comparisons = worse + found, undecided + left, comparisons + compared
        if some and len(left) == len(some):
            reasons = Counter(reason for one in left for reason in one.reasons)
            idle.append(Idle(metric=metric, cases=len(left), reasons=reasons))
    for metric in gate.margins:
        if not worse and not any(one.metric == metric and one.measured for one in every):
            raise BadInput(
                f"{option('gate')}: {metric}: no case has it on both sides, and a gate without data"
                " would always pass; measure it on both, or gate another metric"
            )
    return GateResult(
        gate=gate,
        regressions=tuple(worse),
        undecided=tuple(one for one in undecided if one.base and one.base["status"] == "ok"),
        idle=tuple(idle),
        absent=tuple(one for one in every if one.verdict == ABSENT),
        comparisons=comparisons,
    )


def _of_metric(
    some: Sequence[CaseVerdict], margin_ratio: float, *, by_noise: bool
) -> tuple[list[CaseVerdict], list[CaseVerdict], int]:
    """Those worse by more than the margin, those that are open, and how many were compared."""
    known = [(one, one.ratio) for one in some if one.ratio and not APART & {*one.reasons}]
    worse, left = [], [one for one in some if not one.ratio or APART & {*one.reasons}]
    holds = beyond([ratio for _, ratio in known], margin_ratio)
    for (one, ratio), is_beyond in zip(known, holds, strict=True):
        if ratio.low > 1 + margin_ratio and is_beyond:
            worse.append(replace(one, ratio=replace(ratio, margin_ratio=margin_ratio)))
        elif ratio.low > 1 + margin_ratio or not (
            (by_noise and ratio.mark != NOISY) or ratio.high <= 1 + margin_ratio
        ):
            claims = ("many_claims",) if ratio.low > 1 + margin_ratio else ()
            left.append(replace(one, reasons=(*claims, *one.reasons)))
    return worse, left, len(known)
