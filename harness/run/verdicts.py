"""What the judge said of one case: it alone makes a case right or wrong (worker/judge.py)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JUDGED = {"check": "first", "warm_up": "process", "confirm": "after"}
"""Requests after which a case is ok only with the verdict of this check."""
ERRORS = ("error_l2_ratio", "output_cosine", "error_ratio", "error_limit_ratio")


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
        return {**{name: first.get(name) for name in ERRORS}, "judged": judged or None}
