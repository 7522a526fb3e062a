"""Several groups measured in one lap: a process takes its turn at every group before the next
process does.

A machine's own speed moves in stretches of some seconds to minutes (a neighbour on the same host,
heat). Turns of a group that follow each other at once would all fall into one stretch, agree with
each other, and say nothing of the next one. Spread over the lap, they see several, and the interval
between processes is as wide as the machine is restless.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

from ..cases import Case, Group
from ..record import Record, Status
from ..scenario import Plan
from .group import GroupRun, Guilty, Means

MOST_CASES = 24
"""Of a lap: a killed run loses at most so many cases that were under way."""


def laps(groups: Iterable[Group], plan: Plan) -> Iterator[tuple[Group, ...]]:
    """Groups that are measured together, in order. With one process there are no turns to spread,
    and every group is a lap.
    """
    lap: list[Group] = []
    for group in groups:
        if lap and (
            plan.processes == 1 or sum(len(one.cases) for one in [*lap, group]) > MOST_CASES
        ):
            yield tuple(lap)
            lap = []
        lap.append(group)
    if lap:
        yield tuple(lap)


class Lap:
    """From groups to their records, each as soon as it is final."""

    def __init__(self, means: Means) -> None:
        self.means = means
        self.runs: list[GroupRun] = []

    def records(self, groups: Iterable[Sequence[Case]]) -> Iterator[Record]:
        self.runs = [GroupRun(self.means, cases) for cases in groups]
        yield from self._measured(list(self.runs))
        lonely = [(run, case) for run in self.runs for case in run.lonely]
        for run, case in lonely:
            self.means.crew.close()  # alone means in a process that nothing else has used
            by_itself = GroupRun(self.means, [case], alone=True)
            self.runs.append(by_itself)
            run.lonely.remove(case)
            yield from self._measured([by_itself])

    def unfinished(self, status: Status, reason: str) -> Iterator[Record]:
        """Records for the cases that were under way when the run was stopped."""
        for run in self.runs:
            yield from run.unfinished(status, reason)

    def _measured(self, runs: list[GroupRun]) -> Iterator[Record]:
        for run in runs:
            yield from self._step(run, run.judge)
        order = Random(self.means.terms.seed)
        while runs:
            going = set()
            for number in range(self.means.terms.plan.processes):
                order.shuffle(runs)  # no group always comes right after the same one
                for run in runs:
                    if run.wants(number):
                        going.add(run)
                        yield from self._step(run, lambda run=run, number=number: run.turn(number))  # type: ignore[misc]
            for run in [run for run in runs if run not in going]:
                runs.remove(run)
                yield from self._watched(run)
                yield from run.finish()

    def _watched(self, run: GroupRun) -> Iterator[Record]:
        """The windows of a group whose latencies are known; a case that breaks the worker here
        takes nothing from the others.
        """
        while True:
            try:
                yield from run.watch()
            except Guilty as guilty:
                yield from run.convict(guilty)
            else:
                return

    def _step(self, run: GroupRun, step: Callable[[], Iterator[Record]]) -> Iterator[Record]:
        """One step; where it broke the worker, the group starts again without the guilty case."""
        try:
            yield from step()
        except Guilty as guilty:
            yield from run.convict(guilty)
            run.begin_again()
            if run.states:
                yield from self._step(run, run.judge)
