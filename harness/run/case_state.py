"""What is known of a case while its group is measured, and what its judges said of its results."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..cases.case import Case
from ..rows.status import ERRORS

JUDGED = {"check": "first", "warm_up": "process", "confirm": "after"}
"""Requests after which a case is ok only with the verdict of this check."""


@dataclass(slots=True)
class Verdicts:
    """`told`: by which process. `needed`: how many of each, by process and check."""

    told: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    needed: Counter[tuple[int, str]] = field(default_factory=Counter)

    def need(self, process: int, request: str) -> None:
        """Note that a process was asked to do this."""
        if request in JUDGED:
            self.needed[process, JUDGED[request]] += 1

    @property
    def complaint(self) -> str:
        """What is wrong with the first result that is; "" if none is known to be."""
        for _, verdict in self.told:
            if verdict["complaint"]:
                return str(verdict["complaint"])
            error, limit = verdict["error_ratio"], verdict["error_limit_ratio"]
            if error is not None and limit is not None and not error <= limit:
                return f"{error:.3g} times the error of the textbook formula; {limit:.3g} passes"
        return ""

    def lacking(self, exactness: str | None) -> str:
        """Why the case cannot be ok, as a reason; "" if all that it needs was judged."""
        counts = Counter((process, verdict["check"]) for process, verdict in self.told)
        needed = self.needed + Counter({(0, "wide"): int(exactness == "exact")})
        missing = [f"{check} in process {process}" for process, check in needed - counts]
        judged_as = {verdict["exactness"] for _, verdict in self.told} - {exactness}
        if missing:
            return f"its results were not all judged; missing: {', '.join(missing)}"
        if judged_as:
            return f"was judged as {', '.join(sorted(judged_as))} and says that it is {exactness}"
        return ""

    def fields(self) -> dict[str, Any]:
        """The fields of the case's row: the errors of its first result, and what was judged."""
        first = next((one for _, one in self.told if one["check"] == "first"), {})
        judged = [
            {
                "process": process,
                **{name: one[name] for name in ("check", "rows_seed", "values_seed")},
            }
            for process, one in self.told
        ]
        found = {**{name: first.get(name) for name in ERRORS}, "judged": judged or None}
        first_calls = [(process, one) for process, one in self.told if one["check"] == "process"]
        if len({process for process, _ in first_calls}) > 1:
            digests = {one["output_digest"] for _, one in first_calls}
            found["processes_repeat_exactly"] = len(digests) == 1
        return found


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

    def repeated(self, exactly: bool | None) -> None:
        """Note whether equal inputs gave equal bits in a process; None: nobody knows."""
        if exactly is not None:
            before = self.fields.get("repeats_exactly")
            self.fields["repeats_exactly"] = exactly and before is not False

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
