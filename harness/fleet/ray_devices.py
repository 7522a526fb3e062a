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

from ..files.errors import BadInput, EnvironmentUnmet, option
from ..process.signals import Signals
from ..process.worker_process import Interrupted, signal_name
from ..rows.record import Record, Status
from ..rows.run_files import Document
from ..run.engine import Environment, unlike
from ..run.listener import Listener
from ..run.run_rows import RunRows
from ..run.schedule import MAX_CASES, schedule_parts
from ..run.session import HINT
from ..scenario.shards import Units, units_of, weight_of
from .ray_actor import DeviceActor, DeviceWanted, Opened
from .ray_seats import RaySeat, reason_of, seats_of

OPEN_S = 120.0  # until a process beside a device, and its first worker, have started
LATE_S = 10.0  # for others, once a device is open
LOOK_EVERY_S = 2.0  # for nodes that have joined the cluster
POLL_S = 0.25
PARTS_PER_DEVICE = 3  # at least, where there is so much to do: then no device waits long at the end
MOST_ROWS = 256  # in one write
SHOWN = 3  # reasons in one message
SILENT = "no answer: does other work hold its CPUs or GPU? `ray status` shows it"


@dataclass(frozen=True, slots=True)
class Work:
    """What one device measures without a pause: neighbouring groups, the walls of a problem, or a
    study. `lost_on`: the hosts that were lost with it.
    """

    units: Units
    lost_on: tuple[str, ...] = ()


class RayDevices:
    """Devices as run/engine.py wants them. Ray kills its actors when this process ends.

    A device has the number of its seat. `opened`: those that were open once.
    """

    def __init__(
        self, wanted: DeviceWanted, count: int | None, signals: Signals, listener: Listener
    ) -> None:
        """`count`: of the devices; None for all."""
        self.opened: dict[int, Opened] = {}
        self._wanted, self._count, self._signals = wanted, count, signals
        self._listener = listener
        self._seats: list[RaySeat] = []
        self._started, self._looked_s = 0, -inf
        self._patience_s = LATE_S  # then another one is opened instead
        self._actors: dict[int, Any] = {}
        self._opening: dict[Any, tuple[int, float]] = {}  # by the answer: which, and since when
        self._asked: list[Any] = []  # of the autoscaler
        self._idle: list[int] = []
        self._busy: dict[Any, tuple[int, Work]] = {}  # by the stream of what it says
        self._running: dict[int, str] = {}

    @property
    def environment(self) -> Environment:
        return next(iter(self.opened.values())).environment

    @property
    def free_bytes(self) -> int:
        return min(one.free_bytes for one in self.opened.values())

    @property
    def listed(self) -> list[Document]:
        return [one.facts for one in self.opened.values()]

    def attach(self, budget_bytes: int) -> None:
        """Nothing: attachments are refused before."""

    # ---- before the run --------------------------------------------------------------------------

    def open(self) -> None:
        """As many devices as are wished for, of one kind and with equal software; what cannot be
        used is left out, and said. Raises EnvironmentUnmet, Interrupted.
        """
        began_s, late_s, left_out = time.monotonic(), inf, list[str]()
        fewest, waits = self._count or 1, self._wanted.wait
        while len(self.opened) < (self._count or inf):
            for one in self._ready():
                why, is_unlike = self._answer(one)
                if is_unlike:
                    raise EnvironmentUnmet(why)
                left_out += [why] if why else []
            now = time.monotonic()
            late_s = min(late_s, now + LATE_S) if self.opened else inf
            if len(self.opened) >= fewest and (not self._opening or now > late_s):
                break
            if waits or self._count:
                self._ask_for(fewest - len(self._seats) + len(left_out))
            hopes = self._opening or self._asked or self._started < len(self._seats)
            if not waits and (now > began_s + OPEN_S or not hopes):
                break
        self._ask_for(0)
        silent = [f"{self._seats[number].host}: {SILENT}" for number, _ in self._opening.values()]
        if len(self.opened) < fewest:
            raise EnvironmentUnmet(self._too_few([*left_out, *silent]))
        if self._count:
            self._opening, silent = {}, []
            self.close(but=self.opened)
        for why in (*left_out, *(f"{one}; it is used when it answers" for one in silent)):
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

    def _ready(self) -> list[Any]:
        """What has an answer, after at most POLL_S; nodes that have joined are asked too. Raises
        Interrupted.
        """
        self._signals.check()
        now = time.monotonic()
        if now > self._looked_s + LOOK_EVERY_S:
            self._looked_s = now
            known = {seat.node_id for seat in self._seats}
            found = seats_of(ray.nodes(), self._wanted.device)
            self._seats += [seat for seat in found if seat.node_id not in known]
        silent = sum(now > since + self._patience_s for _, since in self._opening.values())
        most = (self._count or len(self._seats)) - len(self._actors) + silent
        for number in range(self._started, min(len(self._seats), self._started + max(0, most))):
            self._begin(number)
            self._started += 1
        if not (waiting := [*self._busy, *self._opening]):
            time.sleep(POLL_S)
            return []
        ray.wait(waiting, timeout=POLL_S, fetch_local=False)
        every = len(waiting)
        ready: list[Any] = ray.wait(waiting, num_returns=every, timeout=0, fetch_local=False)[0]
        return ready

    def _begin(self, number: int) -> None:
        """Start a process beside a device. It is not Ray that restarts it: Ray says only of one
        that is not restarted whether memory ran out.
        """
        seat, is_new = self._seats[number], number not in self.opened
        there = NodeAffinitySchedulingStrategy(seat.node_id, soft=False)
        options = {**seat.resources, "scheduling_strategy": there}
        actor = self._actors[number] = ray.remote(DeviceActor).options(**options).remote()
        # The lock of a device that was lost may be held by what is ending.
        wait = self._wanted.wait or not is_new
        asked = actor.open.remote(replace(self._wanted, host=seat.host, wait=wait))
        self._opening[asked] = number, time.monotonic()

    def _answer(self, asked: Any) -> tuple[str, bool]:
        """Why a device that was being opened cannot be used, "" if it can; and whether it is unlike
        those that are open.
        """
        number, _ = self._opening.pop(asked)
        host, is_unlike = self._seats[number].host, False
        try:
            found = ray.get(asked)
        except RayError as error:
            found = reason_of(error)
        if isinstance(found, Opened):
            first = next(iter(self.opened), number)
            then = self.opened.get(first, found).environment
            if not (differ := unlike(then, found.environment)):
                self.opened[number] = found
                self._idle.append(number)
                return "", False
            one, is_unlike = differ[0], True
            found = (
                f"has {one.fact} {one.now!r}, {self._seats[first].host} {one.then!r}; a run"
                " measures with one, because rows of both would not be comparable: make them equal,"
                f" or choose devices with {option('device_kind')}"
            )
        self._kill(number)
        return f"{host}{'' if is_unlike else ':'} {found}", is_unlike

    def _ask_for(self, missing: int) -> None:
        """Tasks that do nothing, and for which an autoscaler starts nodes."""
        wanted, is_first = self._wanted, not self._asked
        if self._asked:
            self._asked = ray.wait(self._asked, num_returns=len(self._asked), timeout=0)[1]
        for task in self._asked[max(0, missing) :]:
            ray.cancel(task)
        one: dict[str, Any] = {"num_gpus": 1} if wanted.device == "cuda" else {"num_cpus": 1}
        sizes = [dict(seat.resources) for seat in self._seats]
        one |= max(sizes, key=lambda size: size["num_cpus"], default={})
        if wanted.kind and wanted.device == "cuda":
            one["accelerator_type"] = wanted.kind
        more = range(missing - len(self._asked))
        self._asked += [ray.remote(int).options(**one).remote() for _ in more]
        if more and is_first:
            self._listener.remark(f"asked the cluster for {missing} more; waiting for nodes")

    def _kill(self, number: int) -> None:
        with suppress(RayError, ValueError):
            ray.kill(self._actors.pop(number))

    def close(self, but: Mapping[int, Opened] | None = None) -> None:
        """End the processes beside devices, and they their workers."""
        for number in self._actors.keys() - (but or {}).keys():
            self._kill(number)

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
        rows, self._queue = self._rows, work_of(self._rows, len(self.opened))
        given = ray.put(rows.spec), ray.put(rows.attempts)
        self._patience_s = OPEN_S
        rows.begin(len(self.opened))
        while self._queue or self._busy:
            while self._idle and self._queue:
                number, work = self._idle.pop(0), self._queue.pop(0)
                share = len(work.units.walls) / max(1, len(rows.units.walls))
                asked = (*given, work.units, share, bool(work.lost_on))
                self._busy[self._actors[number].measure.remote(*asked)] = number, work
            soon = (time.monotonic() < since + OPEN_S for _, since in self._opening.values())
            if not self._busy and not any(soon):
                why = "no device is left to measure on"
                self._stop(why)
                raise EnvironmentUnmet(
                    f"{why}; all rows so far are safe: start the hosts again, then go on with"
                    f" attnbench run --resume {rows.store.path.name} and the same options"
                )
            arrived: dict[str, Record] = {}
            for one in self._ready():
                if one in self._opening:
                    self._admit(one)
                else:
                    self._hear(one, arrived)
            if arrived:
                rows.keep(*arrived.values())

    def _hear(self, stream: Any, arrived: dict[str, Record]) -> None:
        """What a device says. Raises RuntimeError for a bug of ours in its process."""
        number, work = self._busy[stream]
        try:
            said = ray.get(next(stream))
        except StopIteration:
            del self._busy[stream]
            self._idle.append(number)
        except RayTaskError as error:
            host = self._seats[number].host
            raise RuntimeError(f"in the process beside {host}:\n{error}") from None
        except RayError as error:
            del self._busy[stream]
            self._rows.keep(*arrived.values())
            arrived.clear()
            self._lose(number, work, error)
        else:
            for one in said:
                if isinstance(one, Record):
                    if one.id in self._rows.left:  # one that came twice is one
                        arrived[one.id] = one
                else:
                    self._running[number] = one[0]
                    self._listener.running(*one)

    def _lose(self, number: int, work: Work, error: RayError) -> None:
        """What the device had measured is kept; the rest is measured once more, or fails."""
        host, where = self._seats[number].host, self.opened[number].where
        left, running = self._rows.left, self._running.get(number)
        why, hosts = reason_of(error), (*work.lost_on, host)
        self._listener.remark(f"{host} was lost: {why}")
        self._kill(number)
        self._begin(number)
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

    def _admit(self, asked: Any) -> None:
        """A device that is back, or has joined."""
        number, _ = self._opening[asked]
        is_back, host = number in self.opened, self._seats[number].host
        if why := self._answer(asked)[0]:
            self._listener.remark(f"not used: {why}")
            return
        if is_back:
            self._listener.remark(f"{host} is back")
            return
        count = len(self._idle) + len(self._busy)
        self._listener.remark(f"{host} joined; devices now: {count}")
        try:
            self._rows.store.add_devices([self.opened[number].facts])
        except BadInput as error:
            self._listener.remark(f"{host} is not in run.json: {error}")

    def _stop(self, why: str) -> None:
        """End early: what was not measured to the end gets rows that say so."""
        reason = f"{why}; {HINT}"
        for _, work in self._busy.values():
            self._fail(work.units.ids, Status.INTERRUPTED, reason, {})
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
