"""Which findings stop a change: what became worse by more than its margin."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .verdict import UNDECIDED, Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """`margins`: metric -> the largest harmless change as a ratio, 0.05 for 5 %; None: as without a
    gate, by the noise of the machine.
    """

    margins: Mapping[str, float | None]
    fail_on_undecided: bool = False

    @property
    def given(self) -> dict[str, float]:
        """Those that were given as numbers."""
        return {metric: margin for metric, margin in self.margins.items() if margin is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`undecided` are those that the gate asked about and that base has a value for."""

    gate: Gate
    regressions: tuple[Finding, ...]
    undecided: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        return not self.regressions and not (self.gate.fail_on_undecided and self.undecided)


def apply(gate: Gate, findings: Iterable[Finding]) -> Outcome:
    """Broken cases are regressions whatever is gated. Raises ValueError where a gated metric has no
    value on both sides of any case.
    """
    found = list(findings)
    regressions = tuple(
        one for one in found if one.worse and one.metric in (*gate.margins, "status")
    )
    for metric in gate.margins:
        if not regressions and not any(one.metric == metric and one.measured for one in found):
            raise ValueError(
                f"{metric}: no case has it on both sides; a gate that sees nothing would always"
                " pass"
            )
    asked = [
        one for one in found if one.verdict == UNDECIDED and one.metric in (*gate.margins, "status")
    ]
    return Outcome(
        gate=gate,
        regressions=regressions,
        undecided=tuple(one for one in asked if one.base is not None and one.base.ok),
    )
