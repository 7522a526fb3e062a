"""In which order groups and processes are measured on one device."""

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from ..cases.case import Case, Group
from ..rows.record import Record, Status
from ..scenario import Plan
from .group import GroupRun
from .worker_pool import Runtime, Seat

MAX_CASES = 24
"""Of one part of the schedule: a killed run loses at most this many unfinished cases."""


def schedule_parts(
    groups: Iterable[Group], plan: Plan, most_cases: int = MAX_CASES
) -> Iterator[tuple[Group, ...]]:
    """Split the groups into parts that are measured together, in order.

    With one process there is nothing to spread over time, and every group is a part. A group of
    more than `most_cases` is one too.
    """
    part: list[Group] = []
    for group in groups:
        cases = sum(len(one.cases) for one in [*part, group])
        if part and (plan.processes == 1 or cases > most_cases):
            yield tuple(part)
            part = []
        part.append(group)
    if part:
        yield tuple(part)


class Schedule:
    """Measures groups together: each process measures all of them before the next process does.

    A machine's speed drifts over seconds to minutes (a neighbour on the same host, heat). Blocks of
    a group that directly follow each other would share one level of drift, agree with each other,
    and miss the next level. Spread over time they see several, so the interval between processes
    includes the drift.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.runs: list[GroupRun] = []

    def records(self, groups: Iterable[Sequence[Case]]) -> Iterator[Record]:
        """Each record as soon as it is final."""
        self.runs = [
            GroupRun(self.runtime, cases, number=number) for number, cases in enumerate(groups)
        ]
        for run in self.runs:
            yield from run.check()
        left, order = list(self.runs), Random(self.runtime.spec.seed)
        while left:
            measured = set[GroupRun]()
            for seat in self._seats(left):
                order.shuffle(left)  # no group always follows the same one
                for run in left:
                    if run.needs_blocks(seat):
                        measured.add(run)
                        yield from run.sample(seat)
            for run in [run for run in left if run not in measured]:
                left.remove(run)
                yield from run.watch()
                yield from run.finish()

    def _seats(self, runs: Iterable[GroupRun]) -> list[Seat]:
        """Of each process the shared worker, then those of backends from outside."""
        backends = sorted({backend for run in runs for backend in run.backends})
        processes = range(self.runtime.spec.how.plan.processes)
        return [Seat(process, backend) for process in processes for backend in backends]

    def unfinished(self, status: Status, reason: str) -> Iterator[Record]:
        """Records of the cases that were being measured when the run was stopped."""
        for run in self.runs:
            yield from run.unfinished(status, reason)
