"""A run on the devices of a Ray cluster: an actor beside each, and every row on disk at once.

No group is split over devices. What a lost device was measuring is measured once more, elsewhere or
there; if that is lost too, its rows say so.
"""

import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

import ray
from ray.exceptions import OutOfMemoryError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ..files.errors import EnvironmentUnmet, option
from ..process.signals import Signals
from ..process.worker_process import Interrupted, signal_name
from ..rows.record import Record, Status
from ..rows.run_files import Document
from ..run.environments import Environment, unlike
from ..run.listener import Listener
from ..run.run_rows import RunRows
from ..run.schedule import MAX_CASES, schedule_parts
from ..run.session import HINT
from ..scenario.shards import Units, units_of, weight_of
from .ray_actor import DeviceActor, DeviceWanted, Opened
from .ray_seats import RaySeat, reason_of, seats_of

OPEN_S = 120.0  # until a process beside a device, and its first worker, have started
LATE_S = 10.0  # for others, once a device is open; then another one is opened instead
LOOK_EVERY_S = 2.0  # for nodes that have joined the cluster
POLL_S = 0.25
PARTS_PER_DEVICE = 3  # at least, where there is so much to do: then no device waits long at the end
SHOWN = 3  # reasons in one message
SILENT = "no answer: does other work hold its CPUs or GPU? `ray status` shows it"


@dataclass(frozen=True, slots=True)
class Work:
    """What one device measures without a pause: neighbouring groups, the walls of a problem, or a
    study. `lost_on`: the hosts that were lost with it.
    """

    units: Units
    lost_on: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class RayDevice:
    """The process beside a device. `pending`: its answer to `open`, asked at `asked_s`; with
    `work`, the stream of what it says; None if it is idle, or ended. `opened`: what it was when it
    was open last. `running`: what it measures now.
    """

    seat: RaySeat
    actor: Any = None
    pending: Any = None
    asked_s: float = 0.0
    opened: Opened | None = None
    work: Work | None = None
    running: str = ""

    @property
    def is_opening(self) -> bool:
        return self.pending is not None and self.work is None

    def open(self, wanted: DeviceWanted) -> None:
        """Start it. It is not Ray that restarts it: Ray says only of one that is not restarted
        whether memory ran out.
        """
        there = NodeAffinitySchedulingStrategy(self.seat.node_id, soft=False)
        options = {**self.seat.resources, "scheduling_strategy": there}
        self.actor = ray.remote(DeviceActor).options(**options).remote()
        # The lock of a device that was lost may be held by what is ending.
        wait = wanted.wait or self.opened is not None
        self.pending = self.actor.open.remote(replace(wanted, host=self.seat.host, wait=wait))
        self.asked_s = time.monotonic()

    def end(self) -> None:
        """And its workers end with it."""
        if self.actor is not None:
            with suppress(RayError, ValueError):
                ray.kill(self.actor)
        self.actor = self.pending = self.work = None


class RayDevices:
    """Devices as run/engine.py wants them. Ray kills its actors when this process ends."""

    def __init__(
        self, wanted: DeviceWanted, count: int | None, signals: Signals, listener: Listener
    ) -> None:
        """`count`: of the devices; None for all."""
        self._wanted, self._count, self._signals = wanted, count, signals
        self._listener = listener
        self._seats: list[RaySeat] = []  # without a process so far
        self._nodes, self._looked_s = set[str](), -inf
        self._devices: list[RayDevice] = []

    @property
    def opened(self) -> list[Opened]:
        """Those that were open once."""
        return [one.opened for one in self._devices if one.opened]

    @property
    def environment(self) -> Environment:
        return self.opened[0].environment

    @property
    def free_bytes(self) -> int:
        return min(one.free_bytes for one in self.opened)

    @property
    def listed(self) -> list[Document]:
        return [one.facts for one in self.opened]

    def attach(self, budget_bytes: int) -> None:
        """Nothing: attachments are refused before."""

    def close(self) -> None:
        for one in self._devices:
            one.end()

    # ---- before the run --------------------------------------------------------------------------

    def open(self) -> None:
        """As many devices as are wished for, of one kind and with equal software; what cannot be
        used is left out, and said. Raises EnvironmentUnmet, Interrupted.
        """
        began_s, late_s, left_out = time.monotonic(), inf, list[str]()
        fewest = self._count or 1
        while True:
            left_out += filter(None, map(self._answer, self._ready()))
            count, now = len(self.opened), time.monotonic()
            late_s = min(late_s, now + LATE_S) if count else inf
            hopes = any(one.is_opening for one in self._devices) or bool(self._seats)
            if count >= fewest and (self._count or not hopes or now > late_s):
                break
            if not self._wanted.wait and (not hopes or now > began_s + OPEN_S):
                break
        silent = [f"{one.seat.host}: {SILENT}" for one in self._devices if one.is_opening]
        if count < fewest:
            raise EnvironmentUnmet(self._too_few([*left_out, *silent]))
        late = () if self._count else (f"{one}; it is used when it answers" for one in silent)
        for why in (*left_out, *late):
            self._listener.remark(f"left out: {why}")

    def _too_few(self, left_out: Sequence[str]) -> str:
        count, more = len(self.opened), len(left_out) - SHOWN
        reasons = "; ".join([*left_out[:SHOWN], *([f"and {more} more"] if more > 0 else [])])
        asked = f"{option('devices', self._count)}: " if self._count else ""
        has = f"{count} of the cluster's devices" if count else "no device of the cluster"
        none = f"no node has a whole {'GPU' if self._wanted.device == 'cuda' else 'CPU'} for Ray"
        return (
            f"{asked}{has} can be used ({reasons or none}); free or start more"
            f"{', ask for fewer' if count else ''}, or wait for them with {option('wait', True)}"
        )

    def _ready(self) -> list[RayDevice]:
        """What has an answer, after at most POLL_S; nodes that have joined are asked too. Raises
        Interrupted.
        """
        self._signals.check()
        now = time.monotonic()
        if now > self._looked_s + LOOK_EVERY_S:
            self._looked_s = now
            found = seats_of(ray.nodes(), self._wanted.device)
            self._seats += [seat for seat in found if seat.node_id not in self._nodes]
            self._nodes |= {seat.node_id for seat in found}
        answering = [
            one
            for one in self._devices
            if one.actor is not None
            and (one.opened or not one.is_opening or now < one.asked_s + LATE_S)
        ]  # one that was lost is waited for, unless Ray says that it is gone
        most = self._count - len(answering) if self._count else len(self._seats)
        for _ in range(min(most, len(self._seats))):
            self._devices.append(RayDevice(self._seats.pop(0)))
            self._devices[-1].open(self._wanted)
        waiting = {one.pending: one for one in self._devices if one.pending is not None}
        if not waiting:
            time.sleep(POLL_S)
            return []
        every = list(waiting)
        ray.wait(every, timeout=POLL_S, fetch_local=False)
        ready = ray.wait(every, num_returns=len(every), timeout=0, fetch_local=False)[0]
        return [waiting[one] for one in ready]

    def _answer(self, device: RayDevice) -> str:
        """Why a device that was being opened cannot be used, "" if it can. Raises EnvironmentUnmet
        if it is unlike those that are open.
        """
        host, opened = device.seat.host, self.opened
        try:
            found = ray.get(device.pending)
        except RayError as error:
            found = reason_of(error)
        others = sum(one.actor is not None and not one.is_opening for one in self._devices)
        if isinstance(found, str) or others == self._count:  # another was opened instead
            device.end()
            return f"{host}: {found}" if isinstance(found, str) else ""
        first = opened[0] if opened else found
        if differ := unlike(first.environment, found.environment):
            device.end()
            one = differ[0]
            raise EnvironmentUnmet(
                f"{host} has {one.fact} {one.now!r}, {first.where['host']} {one.then!r}; a run"
                " measures with one, because rows of both would not be comparable: make them equal,"
                f" or choose devices with {option('device_kind')}"
            )
        device.opened, device.pending = found, None
        return ""

    # ---- the run ---------------------------------------------------------------------------------

    def measure(self, rows: RunRows) -> None:
        """The whole run. If a signal ends it, what has no row yet gets one.

        Raises EnvironmentUnmet if every device was lost; the rows say so then.
        """
        self._rows = rows
        try:
            self._measure()
        except Interrupted:
            rows.result.signal = number = self._signals.received or signal.SIGINT
            self._stop(f"stopped by {signal_name(number)}")
        finally:
            rows.store.close()

    def _measure(self) -> None:
        """Raises Interrupted, EnvironmentUnmet."""
        rows, devices = self._rows, self._devices
        self._queue = work_of(rows, len(self.opened))
        rows.begin(len(self.opened))
        given = ray.put(rows.spec), ray.put(rows.attempts)
        while self._queue or any(one.work for one in devices):
            for one in devices:
                if self._queue and one.actor is not None and one.pending is None:
                    one.work = work = self._queue.pop(0)
                    share = len(work.units.walls) / max(1, len(rows.units.walls))
                    asked = (*given, work.units, share, bool(work.lost_on))
                    one.pending = one.actor.measure.remote(*asked)
            newest_s = max((one.asked_s for one in devices if one.is_opening), default=-inf)
            if not any(one.work for one in devices) and time.monotonic() > newest_s + OPEN_S:
                why = "no device is left to measure on"
                self._stop(why)
                raise EnvironmentUnmet(
                    f"{why}; all rows so far are safe: start the hosts again, then go on with"
                    f" attnbench run --resume {rows.store.path.name} and the same options"
                )
            arrived, lost = list[Record](), list[tuple[RayDevice, RayError]]()
            for one in self._ready():
                try:
                    arrived += self._hear(one)
                except RayError as error:
                    lost.append((one, error))
            if arrived:
                rows.keep(*arrived)
            for one, loss in lost:
                self._lose(one, loss)

    def _hear(self, device: RayDevice) -> list[Record]:
        """What a device has measured. Raises RayError if it was lost, RuntimeError for a bug of
        ours in its process.
        """
        if device.work is None:
            self._admit(device)
            return []
        try:
            said = ray.get(next(device.pending))
        except StopIteration:
            device.work = device.pending = None
            return []
        except RayTaskError as error:
            raise RuntimeError(f"in the process beside {device.seat.host}:\n{error}") from None
        for one in said:
            if not isinstance(one, Record):
                device.running = one[0]
                self._listener.running(*one)
        return [one for one in said if isinstance(one, Record)]

    def _lose(self, device: RayDevice, error: RayError) -> None:
        """What the device had measured is kept; the rest is measured once more, or fails."""
        host, work, left, running = device.seat.host, device.work, self._rows.left, device.running
        assert work is not None
        assert device.opened is not None
        where, why, hosts = device.opened.where, reason_of(error), (*work.lost_on, host)
        self._listener.remark(f"{host} was lost: {why}")
        device.end()
        device.open(self._wanted)
        if isinstance(error, OutOfMemoryError) and work.lost_on and running in left:
            # Every step was said this time, so it is known which one it was.
            reason = f"the memory of {host} ran out: {why}"
            self._fail([running], Status.OOM, reason, where)
            hosts = (host,)
        if len(hosts) == 1:
            rest = units_of(work.units.where(lambda one: one.id in left))
            self._queue[:0] = [Work(one, hosts) for one in rest]  # each group apart
            return
        reason = f"{hosts[-1]} was lost while it was measured, and {hosts[0]} before: {why}"
        self._fail(work.units.ids, Status.CRASHED, reason, where)

    def _admit(self, device: RayDevice) -> None:
        """A device that is back, or has joined."""
        how = "is back" if device.opened else "joined"
        try:
            why = self._answer(device)
        except EnvironmentUnmet as unlike_others:
            why = str(unlike_others)
        if why:
            self._listener.remark(f"not used: {why}")
        elif device.actor is not None:
            count = sum(one.actor is not None and not one.is_opening for one in self._devices)
            self._listener.remark(f"{device.seat.host} {how}; devices now: {count}")
            self._rows.store.add_devices(self.listed)

    def _stop(self, why: str) -> None:
        """End early: what was not measured to the end gets rows that say so."""
        reason = f"{why}; {HINT}"
        for one in self._devices:
            if one.work:
                self._fail(one.work.units.ids, Status.INTERRUPTED, reason, {})
        if self._rows.left:
            self._rows.not_reached(reason, where={})

    def _fail(
        self, ids: Sequence[str], status: Status, reason: str, where: Mapping[str, str | None]
    ) -> None:
        """Rows of those that have none."""
        rows = self._rows
        left = [rows.left[one] for one in ids if one in rows.left]
        rows.keep(*(rows.without_measuring(one, status, reason, where) for one in left))


def work_of(rows: RunRows, devices: int) -> list[Work]:
    """The longest first, so that the last device to end is not far behind the others.

    Groups that fit into one part of the schedule are measured together, as on one device, unless
    there would be too few parts for the devices.
    """
    units, plan = rows.units, rows.spec.how.plan
    most = min(MAX_CASES, ceil(len(units.cases) / (PARTS_PER_DEVICE * max(1, devices))))
    parts = [Units(part) for part in schedule_parts(units.groups, plan, most)]
    found = [*parts, *units_of(units._replace(groups=()))]
    found.sort(key=lambda one: -weight_of(one, plan, rows.spec.device))
    return list(map(Work, found))
