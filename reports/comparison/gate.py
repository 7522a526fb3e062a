"""`compare --gate`: which verdicts are regressions, and whether anything was decided at all."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ...harness.files.errors import BadInput
from ..words import NOT_DECIDED
from .verdict import ABSENT, CaseVerdict

Outcome = Literal["passed", "failed", "nothing decided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What fails a comparison.

    `margins`: metric -> the largest harmless change as a ratio, 0.05 for 5 %; None: by the noise of
    the machine, as without a gate.
    """

    margins: Mapping[str, float | None]
    fail_on_undecided: bool = False

    @property
    def given(self) -> dict[str, float]:
        """The margins that were given as numbers."""
        return {metric: margin for metric, margin in self.margins.items() if margin is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A gated metric that decided nothing. `reasons`: how often each weakened a verdict."""

    metric: str
    cases: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """`undecided`: undecided verdicts on gated metrics of cases that base has a value for.

    `idle`: the gated metrics that are not decided in any case. `absent`: cases that only one side
    has, which do not count.
    """

    gate: Gate
    regressions: tuple[CaseVerdict, ...]
    undecided: tuple[CaseVerdict, ...]
    idle: tuple[Idle, ...] = ()
    absent: tuple[CaseVerdict, ...] = ()

    @property
    def outcome(self) -> Outcome:
        if self.regressions or (self.gate.fail_on_undecided and self.undecided):
            return "failed"
        return "nothing decided" if self.idle else "passed"

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


def apply(gate: Gate, verdicts: Iterable[CaseVerdict]) -> GateResult:
    """Which verdicts fail the gate; broken cases always do.

    Raises BadInput if no case has a gated metric on both sides.
    """
    every = list(verdicts)
    gated = [one for one in every if one.metric in (*gate.margins, "status")]
    regressions = tuple(one for one in gated if one.worse)
    for metric in gate.margins:
        if not regressions and not any(one.metric == metric and one.measured for one in every):
            raise BadInput(
                f"--gate: {metric}: no case has it on both sides; a gate without data would always"
                " pass"
            )
    undecided = (one for one in gated if one.verdict == NOT_DECIDED)
    return GateResult(
        gate=gate,
        regressions=regressions,
        undecided=tuple(one for one in undecided if one.base is not None and one.base.ok),
        idle=tuple(
            _idle(metric, some)
            for metric in gate.margins
            if (some := [one for one in every if one.metric == metric])
            and all(one.verdict == NOT_DECIDED for one in some)
        ),
        absent=tuple(one for one in every if one.verdict == ABSENT),
    )


def _idle(metric: str, undecided: list[CaseVerdict]) -> Idle:
    reasons = Counter(reason for one in undecided for reason in one.reasons)
    return Idle(metric=metric, cases=len(undecided), reasons=reasons)
