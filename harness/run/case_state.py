"""What is known of a case while its group is measured."""

from dataclasses import dataclass, field
from typing import Any

from ..cases.case import Case
from .verdicts import Verdicts

CLOCKS_APART_S, CLOCKS_APART_RATIO = 0.015, 1.5  # of a block, by the parent's and worker's clocks


@dataclass(slots=True, kw_only=True)
class CaseState:
    """`clocks`: seconds of each block, by our clock and by the worker's."""

    case: Case
    fields: dict[str, Any]
    started_utc: str | None = None
    spent_s: float = 0.0
    checked: bool = False  # it has passed its check
    watched: int = 0  # how often, of the plan's windows
    windows: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] | None = None
    clocks: list[tuple[float, float]] = field(default_factory=list)
    verdicts: Verdicts = field(default_factory=Verdicts)

    @property
    def not_judged(self) -> str:
        """Why nobody knows whether the case is right; "" if the judge does."""
        return self.verdicts.lacking(self.fields.get("exactness"))

    @property
    def clock_complaint(self) -> str:
        """A reason if the worker's clock runs slower than ours, in every block by far.

        Ours includes the way of the worker's message, so one block proves nothing; not what both
        waited for a core.
        """
        apart = [ours - theirs for ours, theirs in self.clocks]
        if not apart or min(apart) < CLOCKS_APART_S:
            return ""
        ours, theirs = (sum(side) for side in zip(*self.clocks, strict=True))
        if ours < CLOCKS_APART_RATIO * theirs:
            return ""
        return (
            f"its blocks took {ours * 1e3:.3g} ms by the clock of the parent process, and"
            f" {theirs * 1e3:.3g} ms by that of its own: the clock in its process is wrong"
        )
