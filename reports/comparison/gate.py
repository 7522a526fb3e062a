"""`compare --gate`: which cases are regressions, and whether anything was decided at all.

A gate speaks of many pairs at once, so a regression must hold among all of them (Holm); no pair's
mark changes for that.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...harness.files.errors import BadInput, option
from ..judging.many import beyond
from ..words import NOISY, NOT_DECIDED, SAME_RATIO
from .verdict import ABSENT, APART, CaseVerdict

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
                f"{option('gate')}: {metric}: no case has it on both sides; a gate without data"
                " would always pass"
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
