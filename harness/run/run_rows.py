"""What of a plan has no final row yet, and the rows on their way to disk."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..cases.case import Case, Wall
from ..cases.costs import known_costs
from ..rows.record import FAILURES, Planned, Record, Status
from ..scenario.shards import Units
from ..store.run_store import Store
from .listener import Begun, Listener
from .wall_runner import known_of_wall
from .worker_pool import RunConfig

WALL_TRIALS = 9  # about: while N grows, and near the longest that fits


class PreviousRow(NamedTuple):
    """The row that counts, of a run that is resumed."""

    status: str
    attempt: int


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What is left to measure, and where the rows go. `previous`: the rows of a resumed run.
    `devices`: how many measure at a time.
    """

    store: Store
    config: RunConfig
    listener: Listener
    remarks: Sequence[str]
    previous: Mapping[str, PreviousRow]
    units: Units
    devices: int = 1

    @property
    def attempts(self) -> dict[str, int]:
        """Of the last row, by id."""
        return {case: row.attempt for case, row in self.previous.items()}


def steps_of(planned: Planned, config: RunConfig) -> int:
    """How many steps it has at most, as in Listener; of a wall, about."""
    if isinstance(planned, Case):
        plan = config.plan
        return 1 + ("latency" in config.measure) * plan.processes * plan.max_blocks
    return WALL_TRIALS if isinstance(planned, Wall) else 1


class RunRows:
    """The only one who appends rows to a run; `left`: what is planned and has none yet."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.result = RunResult(path=plan.store.path)
        self._attempts = plan.attempts
        self.left: dict[str, Planned] = {one.id: one for one in plan.units.planned}
        done = (row.status for case, row in plan.previous.items() if case not in self.left)
        self.result.statuses.update(done)

    @property
    def is_finished(self) -> bool:
        """Everything planned was tried to the end, and something was planned."""
        statuses = self.result.statuses
        return not self.left and bool(statuses) and not statuses[Status.INTERRUPTED]

    def begin(self) -> None:
        """Tell the listener what will be measured."""
        plan, done = self.plan, self.result.statuses.total()
        walls, studies = len(plan.units.walls), len(plan.units.studies)
        cases = len(self.left) - walls - studies + done
        planned = {"cases": cases, "walls": walls, "studies": studies}
        steps = {name: steps_of(one, plan.config) for name, one in self.left.items()}
        begun = Begun(plan.store.path, planned, done, plan.remarks, steps, plan.devices)
        plan.listener.begin(begun)

    def without_measuring(
        self, planned: Planned, status: Status, reason: str, where: Mapping[str, str | None]
    ) -> Record:
        """The row of something that nothing was measured of; `where`: RunConfig.measured_on."""
        values: dict[str, Any] = {}
        if isinstance(planned, Case):
            values = known_costs(planned.problem)
        elif isinstance(planned, Wall):
            values = known_of_wall(self.plan.config)
        return Record(
            planned=planned,
            device=self.plan.config.device,
            attempt=self._attempts.get(planned.id, 0) + 1,
            status=status,
            reason=reason,
            values={**where, **values},
        )

    def keep(self, *records: Record) -> None:
        """Put rows on disk, then tell the listener. Raises StoreError."""
        for record in self.plan.store.append(records):
            self.left.pop(record.id, None)
            self.result.statuses[record.status] += 1
            self.plan.listener.finished(record)

    def not_reached(self, reason: str) -> None:
        """What is left gets rows that say so; the listener hears none. Raises StoreError."""
        where, reason = self.plan.config.measured_on, f"not reached: {reason}"
        status = Status.INTERRUPTED
        self.plan.store.append(
            self.without_measuring(one, status, reason, where) for one in self.left.values()
        )
        self.result.statuses[status] += len(self.left)
        self.left.clear()
