"""What is known of a case while its group is measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..cases.case import Case
from ..measure.conditions import add_floor
from ..process.child import CaseEnded
from ..rows.plans import MOST_TRIES
from ..rows.status import Status
from .worker_pool import utc_now

CLOCKS_APART_S, CLOCKS_APART_RATIO = 0.015, 1.5  # of a block, by the parent's and worker's clocks
BETWEEN_CALLS_S = 1e-4
"""Between two calls on a CPU, which is no call's time: new tokens and six readings of clocks, 37 to
46 us on two machines, about 90 on a busy one.
"""
STALE = "a timed call returned the result of earlier inputs: it answers from memory"


@dataclass(slots=True, kw_only=True, eq=False)
class CaseState:
    """`backend`: that its worker is for, "" if it shares the run's own. `beside`: of a baseline
    that has no row of its own, the case in whose worker it is timed. `judged`: its results that
    were; `digests`: of first results, by process. `clocks`: seconds of each block, by our clock
    less what lies between calls, and by the worker's.
    """

    case: Case
    fields: dict[str, Any]
    backend: str = ""
    beside: "CaseState | None" = None
    compiles: bool = False
    started_utc: str | None = None
    spent_s: float = 0.0
    watched: int = 0  # how often, of the plan's windows
    windows: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    judged: list[dict[str, Any]] = field(default_factory=list)
    digests: dict[int, list[str]] = field(default_factory=dict)
    clocks: list[tuple[float, float]] = field(default_factory=list)
    _places_seed: int | None = None
    _last: tuple[int, object] | None = None

    @property
    def name(self) -> str:
        return f"{self.case.id} beside {self.backend}" if self.beside else self.case.id

    @property
    def exactness(self) -> str:
        """As the backend claims; what a worker leaves out is judged as exact."""
        return str(self.fields.get("exactness") or "exact")

    @property
    def is_exact(self) -> bool:
        return self.exactness == "exact"

    def begin(self) -> None:
        """Its first step begins."""
        self.started_utc = self.started_utc or utc_now()

    def warmed_up(self, process: int, reply: Mapping[str, Any]) -> None:
        """Note what a warm-up says."""
        self.digests.setdefault(process, []).extend(reply["digests"])
        self.fields |= {name: reply[name] for name in ("graph_reason", "kv_copies")}
        add_floor(self.fields, reply)

    def places_seed(self, drawn: int) -> int:
        """Of the places to judge: drawn anew, but of what is not exact, whose results can only be
        compared with each other.
        """
        if self.is_exact:
            return drawn
        self._places_seed = drawn if self._places_seed is None else self._places_seed
        return self._places_seed

    def refuse_stale(self, values_seed: int, numbers: object) -> None:
        """Raises CaseEnded if the numbers are those of other values of the inputs."""
        last, self._last = self._last, (values_seed, numbers)
        if self.is_exact or last is None or last[0] == values_seed:
            return
        if last[1] == numbers and any(map(any, numbers)):  # type: ignore[call-overload]
            raise CaseEnded(Status.INCORRECT, STALE, "latency")

    def clocked(self, ours_s: float, theirs_s: float, *, calls: int = 0, tries: float = 1) -> None:
        """Note a block by both clocks. `calls`: if theirs is of the calls alone, how many there
        were, in each of so many `tries`, by the worker's word.
        """
        between_s = calls * min(tries, MOST_TRIES) * BETWEEN_CALLS_S
        self.clocks.append((ours_s - between_s, theirs_s))

    def repeats(self) -> dict[str, bool | None]:
        """Fields of the row: whether equal inputs gave equal bits."""
        all_same = [len(set(found)) == 1 for found in self.digests.values()]
        firsts = {found[0] for found in self.digests.values()}
        return {
            "repeats_exactly": all(all_same) if all_same else None,
            "processes_repeat_exactly": len(firsts) == 1 if len(self.digests) > 1 else None,
        }

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
            f"its blocks took at least {ours * 1e3:.3g} ms by the parent's clock and"
            f" {theirs * 1e3:.3g} ms by its own: the clock in its process is wrong"
        )
