"""What of a plan has no final row yet, and the rows on their way to disk."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..cases.case import Case, Wall
from ..cases.costs import known_costs
from ..rows.model import KINDS
from ..rows.record import FAILURES, RETRIED, Planned, Record, Status
from ..rows.run_files import read_rows
from ..rows.run_store import Store, point_latest
from ..scenario.shards import Units
from .listener import Begun, Listener
from .spec import RunSpec
from .wall_runner import known_of_wall

WALL_TRIALS = 9  # about: while N grows, and near the longest that fits


class LastRows(NamedTuple):
    """Of the rows that count in a run that is resumed, by id."""

    statuses: Mapping[str, str] = {}
    attempts: Mapping[str, int] = {}

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises BadInput."""
        statuses, attempts = dict[str, str](), dict[str, int]()
        for row in read_rows(path):
            if row["kind"] in KINDS:
                statuses[row["case"]], attempts[row["case"]] = row["status"], row["attempt"]
        return cls(statuses, attempts)

    def final(self, *, retry_failed: bool = False) -> set[str]:
        """What is not measured again: all but what was interrupted, and failures if so wished."""
        again = {Status.INTERRUPTED, *(RETRIED if retry_failed else ())}
        return {case for case, status in self.statuses.items() if status not in again}


NONE = LastRows()  # of a new run


@dataclass(slots=True, kw_only=True)
class RunResult:
    """How a run ended. `signal`: the number of the signal that ended it early. `few_threads`: that
    it left cores to other programs, "" if not.
    """

    path: Path
    statuses: Counter[str] = field(default_factory=Counter)
    signal: int | None = None
    few_threads: str = ""

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return 128 + self.signal
        return 1 if any(self.statuses[status] for status in FAILURES) else 0


def steps_of(planned: Planned, spec: RunSpec) -> int:
    """How many steps it has at most, as in Listener; of a wall, about."""
    if isinstance(planned, Case):
        plan = spec.how.plan
        return 1 + ("latency" in spec.how.measure) * plan.processes * plan.max_blocks
    return WALL_TRIALS if isinstance(planned, Wall) else 1


class RunRows:
    """The only one who appends rows to a run. `units`: what is measured; `left`: what of it has no
    row yet; `remarks`: for the user, before anything is measured.
    """

    def __init__(
        self,
        spec: RunSpec,
        store: Store,
        units: Units,
        listener: Listener,
        last: LastRows = NONE,
    ) -> None:
        self.spec = spec
        self.store = store
        self.units = units
        self.listener = listener
        self.attempts = last.attempts
        self.remarks: list[str] = []
        self.result = RunResult(path=store.path)
        self.left: dict[str, Planned] = {one.id: one for one in units.planned}
        done = (status for case, status in last.statuses.items() if case not in self.left)
        self.result.statuses.update(done)

    def begin(self, devices: int = 1) -> None:
        """Tell the listener what will be measured; `devices`: that share it."""
        done = self.result.statuses.total()
        walls, studies = len(self.units.walls), len(self.units.studies)
        cases = len(self.left) - walls - studies + done
        planned = {"cases": cases, "walls": walls, "studies": studies}
        steps = {name: steps_of(one, self.spec) for name, one in self.left.items()}
        self.listener.begin(Begun(self.store.path, planned, done, self.remarks, steps, devices))

    def without_measuring(
        self, planned: Planned, status: Status, reason: str, where: Mapping[str, str | None]
    ) -> Record:
        """The row of something that nothing was measured of; `where`: Runtime.measured_on."""
        values: dict[str, Any] = {}
        if isinstance(planned, Case):
            values = known_costs(planned.problem)
        elif isinstance(planned, Wall):
            values = known_of_wall(self.spec)
        attempt = self.attempts.get(planned.id, 0) + 1
        own = {"device": self.spec.device, "attempt": attempt}
        return Record.of(planned, status, reason, {**where, **values, **own})

    def keep(self, *records: Record) -> None:
        """Put rows on disk, then tell the listener. Raises StoreError."""
        self.store.append(records)
        for record in records:
            self.left.pop(record.id, None)
            self.result.statuses[record.status] += 1
            self.listener.finished(record)

    def not_reached(self, reason: str, where: Mapping[str, str | None]) -> None:
        """What is left gets rows that say so; the listener hears none. Raises StoreError."""
        status, reason = Status.INTERRUPTED, f"not reached: {reason}"
        self.store.append(
            self.without_measuring(one, status, reason, where) for one in self.left.values()
        )
        self.result.statuses[status] += len(self.left)
        self.left.clear()

    def point_finished(self) -> None:
        """Make `latest` this run if everything planned was tried to the end."""
        statuses, path = self.result.statuses, self.result.path
        if self.left or not statuses or statuses[Status.INTERRUPTED]:
            return
        if remark := point_latest(path.parent, path.name):
            self.listener.remark(remark)
