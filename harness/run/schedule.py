"""In which order groups and processes are measured on one device."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from random import Random

from ..cases.case import Case, Group
from ..rows.record import Record, Status
from ..scenario import Plan
from .group import GroupRun
from .requests import WorkerLost
from .runtime import Runtime

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

    def __init__(self, context: Runtime) -> None:
        self.context = context
        self.runs: list[GroupRun] = []

    def records(self, groups: Iterable[Sequence[Case]]) -> Iterator[Record]:
        """Each record as soon as it is final."""
        self.runs = [
            GroupRun(self.context, cases, number=number) for number, cases in enumerate(groups)
        ]
        yield from self._measured(list(self.runs))
        retried = [(run, case) for run in self.runs for case in run.retry_alone]
        for run, case in retried:
            self.context.pool.close()  # alone also means: in a process that nothing else has used
            alone = GroupRun(self.context, [case], alone=True)
            self.runs.append(alone)
            run.retry_alone.remove(case)
            yield from self._measured([alone])

    def unfinished(self, status: Status, reason: str) -> Iterator[Record]:
        """Records of the cases that were being measured when the run was stopped."""
        for run in self.runs:
            yield from run.unfinished(status, reason)

    def _measured(self, runs: list[GroupRun]) -> Iterator[Record]:
        config, pool = self.context.spec, self.context.pool
        if "latency" in config.measure:
            pool.start_ahead(range(config.plan.processes))
        for run in runs:
            yield from self._step(run, run.check)
        pool.wait_started()
        order = Random(config.seed)
        while runs:
            measured = set()
            for process in range(config.plan.processes):
                order.shuffle(runs)  # no group always follows the same one
                for run in runs:
                    if run.needs_blocks(process):
                        measured.add(run)
                        yield from self._step(run, partial(run.sample, process))
            for run in [run for run in runs if run not in measured]:
                runs.remove(run)
                yield from self._watched(run)
                yield from run.finish()

    def _watched(self, run: GroupRun) -> Iterator[Record]:
        """The windows of a group; a case that loses the worker here costs the others nothing."""
        while True:
            try:
                yield from run.watch()
            except WorkerLost as lost:
                yield from run.fail_case(lost)
            else:
                return

    def _step(self, run: GroupRun, step: Callable[[], Iterator[Record]]) -> Iterator[Record]:
        """One step; if it loses the worker, the group starts again without the failed case."""
        try:
            yield from step()
        except WorkerLost as lost:
            yield from run.fail_case(lost)
            run.restart()
            if run.states:
                yield from self._step(run, run.check)
