"""A run on several devices: which of them measures what next, and every row on disk at once.

No group is split over devices. What a lost device was measuring is measured once more, elsewhere or
there; if that is lost too, its rows say so.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from ..cases.case import Group
from ..files.errors import BadInput, EnvironmentUnmet, first_line
from ..process.death import signal_name
from ..process.signals import Signals
from ..process.worker_process import Interrupted
from ..rows.record import Planned, Record, Status
from ..run.environments import unlike
from ..run.run_rows import RunPlan, RunRows
from ..run.schedule import MAX_CASES, schedule_parts
from ..run.session import HINT
from ..scenario.shards import Units, units_of, weight_of
from .node_files import NodeFiles
from .remote import (
    Back,
    Done,
    File,
    Fleet,
    Gone,
    Joined,
    Lost,
    Message,
    Model,
    Opened,
    Predicted,
    Remark,
    Row,
    Running,
    facts_of,
)
from .shipping import Shipping

PARTS_PER_DEVICE = 3  # at least, where there is so much to do: then no device waits long at the end
POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Work:
    """What one device measures without a pause: neighbouring groups, the walls of a problem, or a
    study. `lost_on`: the hosts that were lost with it.
    """

    units: Units
    weight: float
    lost_on: tuple[str, ...] = ()

    @property
    def planned(self) -> Iterator[Planned]:
        for group in self.units.groups:
            yield from group.cases
        yield from self.units.walls
        yield from self.units.studies


def run_on(
    plan: RunPlan, fleet: Fleet, signals: Signals, shipping: Shipping | None = None
) -> RunRows:
    """The whole run. If a signal ends it, what has no row yet gets one. `shipping`: of files that
    devices get for their work.

    Raises EnvironmentUnmet if every device was lost; the rows say so then.
    """
    dispatch = Dispatch(plan, fleet, signals, shipping or Shipping(fleet))
    try:
        dispatch.complete()
    except Interrupted:
        dispatch.rows.result.signal = signals.received
        dispatch.stop(f"stopped by {signal_name(signals.received or signal.SIGINT)}")
    finally:
        plan.store.close()
    return dispatch.rows


class Dispatch:
    """Hands work to devices that have none, and keeps what they say."""

    def __init__(self, plan: RunPlan, fleet: Fleet, signals: Signals, shipping: Shipping) -> None:
        self.queue = work_of(plan, len(fleet.opened))
        if plan.forecast is not None:
            units = [[one.id for one in work.planned] for work in self.queue]
            shared = replace(plan.forecast, devices=len(fleet.opened), units=units)
            plan = replace(plan, forecast=shared)
        self.plan = plan
        self.fleet = fleet
        self.shipping = shipping
        self.signals = signals
        self.rows = RunRows(plan)
        self.devices = dict(fleet.opened)
        self.busy: dict[int, Work] = {}
        self.idle = sorted(self.devices)
        self.lost: set[int] = set()  # that may come back
        self.gone: set[int] = set()
        self._running: dict[int, str] = {}
        # by the number of the original: the device of each copy of a group
        self._copies: dict[int, dict[int, int]] = {}
        self._walls = len(plan.walls)
        self._files = NodeFiles(plan.store.path)

    def complete(self) -> None:
        """Raises Interrupted, EnvironmentUnmet."""
        self.fleet.configure(self.plan.config)
        self.rows.begin()
        while self.queue or self.busy:
            self._assign()
            if self.queue and not (self.busy or self.lost or self.fleet.is_growing):
                self._give_up()
            for number, message in self.fleet.messages(POLL_S):
                self._hear(number, message)
            self.signals.check()

    def stop(self, why: str) -> None:
        """End early: what was not measured to the end gets rows that say so."""
        running = [
            one for work in self.busy.values() for one in work.planned if one.id in self.rows.left
        ]
        reason = f"{why}; {HINT}"
        self.rows.keep(*(self._lost_row(one, Status.INTERRUPTED, reason) for one in running))
        if self.rows.left:
            self.rows.not_reached(reason)

    def _assign(self) -> None:
        for number in list(self.idle):
            while (work := self._next_for(number)) is not None and not self._start(number, work):
                pass

    def _start(self, number: int, work: Work) -> bool:
        """Whether the device measures it now; else it has rows that say why not."""
        if why := self.shipping.send(number, work.units):
            opened = self.devices[number]
            reason = f"{opened.host}: {why}"
            left = [one for one in work.planned if one.id in self.rows.left]
            self.rows.keep(*(self._lost_row(one, Status.ERROR, reason, opened) for one in left))
            return False
        self.idle.remove(number)
        self.busy[number] = work
        for group in work.units.groups:
            self._copies.setdefault(group.original, {})[group.number] = number
        share = len(work.units.walls) / self._walls if self._walls else 1.0
        self.fleet.start(number, work.units, share, every=bool(work.lost_on))
        return True

    def _next_for(self, number: int) -> Work | None:
        """The first that may be measured on this device: copies of a group belong on different
        ones, as long as there is one without; a model is looked at where its files are.
        """
        for place, work in enumerate(self.queue):
            taken = {
                device
                for group in work.units.groups
                for copy, device in self._copies.get(group.original, {}).items()
                if copy != group.number
            }
            if number in taken and self.devices.keys() - self.gone - taken:
                continue
            if self.shipping.lacks(number, work.units) and any(
                not self.shipping.lacks(other, work.units) for other in self._usable
            ):
                continue
            return self.queue.pop(place)
        return None

    def _give_up(self) -> None:
        why = "no device is left to measure on"
        self.stop(why)
        raise EnvironmentUnmet(
            f"{why}; all rows so far are safe: start the hosts again, then go on with attnbench run"
            f" --resume {self.plan.store.path.name} and the same options"
        )

    def _hear(self, number: int, message: Message) -> None:
        listener = self.plan.listener
        match message:
            case Running(what, phase):
                self._running[number] = what
                listener.running(what, phase)
            case Row():
                self._keep(number, message)
            case Predicted(walls, spent_s):
                listener.predicted(walls, spent_s)
            case File(name, data):
                if remark := self._files.add(number, name, data):
                    listener.remark(remark)
            case Model(name, data):
                if remark := self._files.keep_model(name, data):
                    listener.remark(remark)
            case Remark(text):
                listener.remark(text)
            case Done():
                del self.busy[number]
                self.idle.append(number)
            case Lost():
                self._lose(number, message)
            case Back(opened):
                self._take_back(number, opened)
            case Joined(opened):
                self._join(number, opened)
            case Gone(reason):
                self.lost.discard(number)
                self.gone.add(number)
                listener.remark(
                    f"{self.devices[number].host} is gone ({reason}); its work is measured by"
                    " the other devices"
                )

    def _keep(self, number: int, row: Row) -> None:
        """A row that came twice is one: what it is about has left `left`."""
        planned = self.rows.left.get(row.case)
        if planned is None:
            return
        try:
            record = self.rows.record(planned, Status(row.status), row.reason, row.values)
        except ValueError as error:
            where = self.devices[number].where
            reason = f"bad reply of {self.devices[number].host}: {first_line(error)}"
            record = self.rows.without_measuring(planned, Status.ERROR, reason, where)
        self.rows.keep(record)

    def _lose(self, number: int, lost: Lost) -> None:
        """What the device had measured is kept; the rest is measured once more, or fails."""
        self.idle = [one for one in self.idle if one != number]
        self.lost.add(number)
        self.shipping.forget(number)
        opened = self.devices[number]
        work, running = self.busy.pop(number, None), self._running.pop(number, None)
        self.plan.listener.remark(f"{opened.host} was lost: {lost.reason}")
        if work is None:
            return
        hosts = (*work.lost_on, opened.host)
        if lost.out_of_memory and work.lost_on and running in self.rows.left:
            # Every step was said this time, so it is known which one it was.
            reason = f"the memory of {opened.host} ran out: {lost.reason}"
            case = self.rows.left[running]
            self.rows.keep(self._lost_row(case, Status.OOM, reason, opened))
            hosts = (opened.host,)
        left = [one for one in work.planned if one.id in self.rows.left]
        if len(hosts) > 1:
            reason = f"{hosts[-1]} was lost while it was measured, and {hosts[0]} before"
            reason = f"{reason}: {lost.reason}"
            self.rows.keep(*(self._lost_row(one, Status.CRASHED, reason, opened) for one in left))
        else:
            self.queue[:0] = _again(work, {one.id for one in left}, hosts)

    def _take_back(self, number: int, opened: Opened) -> None:
        self.lost.discard(number)
        if self._is_like(number, self.devices[number], opened, "came back"):
            self.plan.listener.remark(f"{opened.host} is back")
            self.devices[number] = opened
            self.idle.append(number)

    def _join(self, number: int, opened: Opened) -> None:
        first = next(iter(self.devices.values()))
        self.devices[number] = opened
        if not self._is_like(number, first, opened, "joined"):
            return
        self.plan.listener.remark(f"{opened.host} joined; devices now: {len(self._usable)}")
        self.idle.append(number)
        try:
            self.plan.store.add_devices([facts_of(opened)])
        except BadInput as error:
            self.plan.listener.remark(f"{opened.host} is not in run.json: {error}")

    def _is_like(self, number: int, before: Opened, opened: Opened, came: str) -> bool:
        """Else it is not used, and a remark says why."""
        if found := unlike(before.environments, opened.environments):
            one = found[0]
            self.gone.add(number)
            self.plan.listener.remark(
                f"{opened.host} {came} with {one.name} {one.now!r}, the run has {one.then!r};"
                " it measures nothing" + (" more" if came == "came back" else "")
            )
        return not found

    @property
    def _usable(self) -> set[int]:
        return self.devices.keys() - self.gone - self.lost

    def _lost_row(
        self, one: Planned, status: Status, reason: str, opened: Opened | None = None
    ) -> Record:
        where = opened.where if opened else self.plan.config.measured_on
        return self.rows.without_measuring(one, status, reason, where)


def work_of(plan: RunPlan, devices: int) -> list[Work]:
    """The longest first, so that the last device to end is not far behind the others.

    Groups that fit into one part of the schedule are measured together, as on one device, unless
    there would be too few parts for the devices.
    """
    config = plan.config
    cases = sum(len(group.cases) for group in plan.groups)
    most = min(MAX_CASES, ceil(cases / (PARTS_PER_DEVICE * max(1, devices))))
    copies: dict[int | None, list[Group]] = {}
    for group in plan.groups:  # a part must not hold two copies of a group
        copies.setdefault(group.cases[0].replica, []).append(group)
    parts = (part for some in copies.values() for part in schedule_parts(some, config.plan, most))
    found = [Units(part, (), ()) for part in parts]
    found += units_of(Units((), plan.walls, plan.studies))
    works = [Work(one, weight_of(one, config.plan, config.device)) for one in found]
    return sorted(works, key=lambda work: -work.weight)


def _again(work: Work, left: set[str], hosts: tuple[str, ...]) -> Iterator[Work]:
    """What is left of lost work, each group apart."""
    for group in work.units.groups:
        cases = tuple(case for case in group.cases if case.id in left)
        if cases:
            one = Units((replace(group, cases=cases),), (), ())
            yield Work(one, work.weight, hosts)
    walls = tuple(wall for wall in work.units.walls if wall.id in left)
    studies = tuple(study for study in work.units.studies if study.id in left)
    if walls or studies:
        yield Work(Units((), walls, studies), work.weight, hosts)
