"""A run on several devices: which of them measures what next, and every row on disk at once.

No group is split over devices. What a lost device was measuring is measured once more, elsewhere or
there; if that is lost too, its rows say so.
"""

import signal
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from ..files.errors import BadInput, EnvironmentUnmet
from ..process.signals import Signals
from ..process.worker_process import Interrupted, signal_name
from ..rows.record import Record, Status
from ..run.environments import unlike
from ..run.run_rows import RunRows
from ..run.schedule import MAX_CASES, schedule_parts
from ..run.session import HINT
from ..run.spec import RunSpec
from ..scenario.shards import Units, units_of, weight_of
from .node_files import NodeFiles
from .remote import (
    Done,
    File,
    Gone,
    Lost,
    Message,
    Opened,
    Predicted,
    Ready,
    Remark,
    Running,
)
from .shipping import Shipping

if TYPE_CHECKING:
    from .ray_devices import RayFleet

PARTS_PER_DEVICE = 3  # at least, where there is so much to do: then no device waits long at the end
POLL_S = 0.5
MOST_ROWS = 256  # in one write


@dataclass(frozen=True, slots=True)
class Work:
    """What one device measures without a pause: neighbouring groups, the walls of a problem, or a
    study. `lost_on`: the hosts that were lost with it.
    """

    units: Units
    weight: float
    lost_on: tuple[str, ...] = ()


def run_on(
    rows: RunRows, fleet: "RayFleet", signals: Signals, shipping: Shipping | None = None
) -> None:
    """The whole run. If a signal ends it, what has no row yet gets one. `shipping`: of files that
    devices get for their work.

    Raises EnvironmentUnmet if every device was lost; the rows say so then.
    """
    dispatch = Dispatch(rows, fleet, signals, shipping or Shipping(fleet))
    try:
        dispatch.complete()
    except Interrupted:
        rows.result.signal = signals.received
        dispatch.stop(f"stopped by {signal_name(signals.received or signal.SIGINT)}")
    finally:
        rows.store.close()


class Dispatch:
    """Hands work to devices that have none, and keeps what they say."""

    def __init__(
        self, rows: RunRows, fleet: "RayFleet", signals: Signals, shipping: Shipping
    ) -> None:
        self.queue = work_of(rows.units, rows.spec, len(fleet.opened))
        self.listener = rows.listener
        self.fleet = fleet
        self.shipping = shipping
        self.signals = signals
        self.rows = rows
        self.devices = dict(fleet.opened)
        self.busy: dict[int, Work] = {}
        self.idle = sorted(self.devices)
        self.lost: set[int] = set()  # that may come back
        self.gone: set[int] = set()
        self._running: dict[int, str] = {}
        self._arrived: list[Record] = []  # not on disk yet
        self._files = NodeFiles(rows.store.path)

    def complete(self) -> None:
        """Raises Interrupted, EnvironmentUnmet."""
        self.fleet.configure(self.rows.spec, self.shipping.told, self.rows.attempts)
        self.rows.begin(len(self.fleet.opened))
        while self.queue or self.busy:
            self._assign()
            if self.queue and not (self.busy or self.lost or self.fleet.is_growing):
                self._give_up()
            try:
                for number, message in self.fleet.messages(POLL_S):
                    self._hear(number, message)
            finally:
                self._keep_arrived()
            self.signals.check()

    def stop(self, why: str) -> None:
        """End early: what was not measured to the end gets rows that say so."""
        reason = f"{why}; {HINT}"
        for work in self.busy.values():
            self._fail(work, Status.INTERRUPTED, reason)
        if self.rows.left:
            self.rows.not_reached(reason, where={})

    def _assign(self) -> None:
        for number in list(self.idle):
            while (work := self._next_for(number)) is not None and not self._start(number, work):
                pass

    def _start(self, number: int, work: Work) -> bool:
        """Whether the device measures it now; else it has rows that say why not."""
        if why := self.shipping.send(number, work.units):
            opened = self.devices[number]
            self._fail(work, Status.ERROR, f"{opened.host}: {why}", opened)
            return False
        self.idle.remove(number)
        self.busy[number] = work
        share = len(work.units.walls) / max(1, len(self.rows.units.walls))
        self.fleet.start(number, work.units, share, every=bool(work.lost_on))
        return True

    def _next_for(self, number: int) -> Work | None:
        """The first for this device: a model is looked at where its files are."""
        for place, work in enumerate(self.queue):
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
            f" --resume {self.rows.store.path.name} and the same options"
        )

    def _hear(self, number: int, message: Message) -> None:
        listener = self.listener
        match message:
            case Running(what, phase):
                self._running[number] = what
                listener.running(what, phase)
            case Record():
                self._arrived.append(message)
                if len(self._arrived) >= MOST_ROWS:
                    self._keep_arrived()
            case Predicted(walls, spent_s):
                listener.predicted(walls, spent_s)
            case File(name, data):
                if remark := self._files.add(number, name, data):
                    listener.remark(remark)
            case Remark(text):
                listener.remark(text)
            case Done():
                del self.busy[number]
                self.idle.append(number)
            case Lost():
                self._keep_arrived()
                self._lose(number, message)
            case Ready(opened):
                self._admit(number, opened)
            case Gone(reason):
                self.lost.discard(number)
                self.gone.add(number)
                listener.remark(
                    f"{self.devices[number].host} is gone ({reason}); its work is measured by"
                    " the other devices"
                )

    def _keep_arrived(self) -> None:
        """Rows are put on disk together; one that came twice is one."""
        rows = {one.id: one for one in self._arrived if one.id in self.rows.left}
        self._arrived.clear()
        if rows:
            self.rows.keep(*rows.values())

    def _lose(self, number: int, lost: Lost) -> None:
        """What the device had measured is kept; the rest is measured once more, or fails."""
        self.idle = [one for one in self.idle if one != number]
        self.lost.add(number)
        self.shipping.forget(number)
        opened = self.devices[number]
        work, running = self.busy.pop(number, None), self._running.pop(number, None)
        self.listener.remark(f"{opened.host} was lost: {lost.reason}")
        if work is None:
            return
        hosts = (*work.lost_on, opened.host)
        if lost.out_of_memory and work.lost_on and running in self.rows.left:
            # Every step was said this time, so it is known which one it was.
            reason = f"the memory of {opened.host} ran out: {lost.reason}"
            case = self.rows.left[running]
            self.rows.keep(self.rows.without_measuring(case, Status.OOM, reason, opened.where))
            hosts = (opened.host,)
        if len(hosts) == 1:
            self.queue[:0] = _again(work, self.rows.left.keys(), hosts)
            return
        reason = f"{hosts[-1]} was lost while it was measured, and {hosts[0]} before: {lost.reason}"
        self._fail(work, Status.CRASHED, reason, opened)

    def _admit(self, number: int, opened: Opened) -> None:
        """A device that is back, or has joined; a remark says why it is not used if it is not."""
        listener, is_back = self.listener, number in self.devices
        before = self.devices[number if is_back else next(iter(self.devices))]
        self.lost.discard(number)
        self.devices[number] = opened
        for one in unlike(before.environment, opened.environment)[:1]:
            self.gone.add(number)
            came, more = ("came back", " more") if is_back else ("joined", "")
            listener.remark(
                f"{opened.host} {came} with {one.fact} {one.now!r}, the run has {one.then!r};"
                f" it measures nothing{more}"
            )
            return
        self.idle.append(number)
        if is_back:
            listener.remark(f"{opened.host} is back")
            return
        listener.remark(f"{opened.host} joined; devices now: {len(self._usable)}")
        try:
            self.rows.store.add_devices([opened.facts])
        except BadInput as error:
            listener.remark(f"{opened.host} is not in run.json: {error}")

    @property
    def _usable(self) -> set[int]:
        return self.devices.keys() - self.gone - self.lost

    def _fail(self, work: Work, status: Status, reason: str, opened: Opened | None = None) -> None:
        """Rows of what is left of work."""
        where = opened.where if opened else {}
        left = [one for one in work.units.planned if one.id in self.rows.left]
        self.rows.keep(*(self.rows.without_measuring(one, status, reason, where) for one in left))


def work_of(units: Units, spec: RunSpec, devices: int) -> list[Work]:
    """The longest first, so that the last device to end is not far behind the others.

    Groups that fit into one part of the schedule are measured together, as on one device, unless
    there would be too few parts for the devices.
    """
    most = min(MAX_CASES, ceil(len(units.cases) / (PARTS_PER_DEVICE * max(1, devices))))
    parts = schedule_parts(units.groups, spec.how.plan, most)
    found = [Units(part, (), ()) for part in parts]
    found += units_of(units._replace(groups=()))
    works = [Work(one, weight_of(one, spec.how.plan, spec.device)) for one in found]
    return sorted(works, key=lambda work: -work.weight)


def _again(work: Work, left: Collection[str], hosts: tuple[str, ...]) -> Iterator[Work]:
    """What is left of lost work, each group apart."""
    rest = work.units.where(lambda one: one.id in left)
    for group in rest.groups:
        yield Work(Units((group,), (), ()), work.weight, hosts)
    if rest.walls or rest.studies:
        yield Work(rest._replace(groups=()), work.weight, hosts)
