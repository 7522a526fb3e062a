"""Devices of a Ray cluster: one actor beside each, and what comes back from it."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError, RayTaskError

from ..files.errors import EnvironmentUnmet
from ..process.worker_process import ANSWER_S, READY_S
from ..run.spec import RunSpec
from ..run.studies import OPEN_S, Told
from ..scenario.shards import Units
from ..studies.attachments import Tried
from .fingerprint import fingerprint
from .node_device import SHARED_CORES
from .ray_actor import MEMORY_MONITOR, answer_of, lost_by, start_actor
from .ray_demand import Demand
from .ray_metrics import Metrics
from .ray_seats import Looked, Seat, Wish, device_of, no_seat, other_code, seats_of
from .remote import Done, Gone, Message, NodeWanted, Opened, Ready, Remark
from .shipping import Content

MOST_DEVICES = 100_000
PLACED_S = 60.0  # until Ray has started a process beside a device
LATE_S = 10.0  # for the others, once a device has answered
BACK_S = 60.0  # until a device that was lost is open again, or given up
LOOK_EVERY_S = 5.0  # for nodes that have joined the cluster
JOIN_EVERY_S = 1.0  # likewise, while nothing is measured
SENT_S = 600.0  # until a file is kept
CLOSE_S = 5.0
POLL_S = 0.25


class Opening(NamedTuple):
    """A device that is being opened. `until`: when it is given up. `is_new`: nothing was measured
    on it before.
    """

    number: int
    until: float
    is_new: bool


class RayFleet:
    """Holds the devices until closed. Ray kills its actors when this process ends."""

    def __init__(
        self, wanted: NodeWanted, wish: Wish, check: Callable[[], None], say: Callable[[str], None]
    ) -> None:
        """`check`: is called while we wait. `say`: to the user, before the run begins."""
        self.opened: dict[int, Opened] = {}
        self.remarks: list[str] = []
        if os.environ.get(SHARED_CORES):
            self.remarks.append("devices share the cores of a host: no time of this run counts")
        self._wanted, self._wish = wanted, wish
        self._check, self._say = check, say
        self._code = fingerprint()
        self._given: Sequence[Any] = ()  # references to what `configure` is given
        self._seats: dict[int, Seat] = {}
        self._actors: dict[int, Any] = {}
        self._looking: dict[Any, int] = {}  # by the awaited answer, as the next two
        self._streams: dict[Any, int] = {}  # of what is measured now
        self._opening: dict[Any, Opening] = {}
        self._left_out: list[str] = []
        self._known: set[str] = set()  # nodes
        self._kind = ""
        self._starts: Counter[int] = Counter()  # of processes, by number
        self._began_s = time.monotonic()
        self._next_look_s = 0.0
        self._metrics = Metrics()

    # ---- before the run --------------------------------------------------------------------------

    def open(self) -> None:
        """Lock as many devices of one kind as are wished for, and start their first workers.

        What does not answer, or cannot be used, is left out with a remark; where all are wished
        for, it is used as soon as it answers. Raises Refusal if too few are left.
        """
        nodes, wish = ray.nodes(), self._wish
        device = device_of(nodes, self._wanted.device)
        self._wanted = replace(self._wanted, device=device)  # nothing is left to Ray's hiding
        if not (seats_of(nodes, device) or wish.devices or wish.waits):
            raise EnvironmentUnmet(no_seat(nodes, device))
        looked = self._look()
        if not self._seats:
            raise EnvironmentUnmet(no_seat(nodes, device))
        waited = list(map(self._unanswered, self._looking.values()))
        ones = wish.chosen(looked, [*self._left_out, *waited])
        self._kind = ones[0].kind
        if on := {self._seats[one.number].host for one in ones if one.memory_monitor}:
            some = ", ".join(sorted(on)[:3])
            self.remarks.append(
                f"Ray's memory monitor may be on ({some}): it kills what is measured when a host's"
                f" memory is nearly full; {MEMORY_MONITOR}=0 before ray start turns it off"
            )
        numbers = [one.number for one in ones]
        for number in {one.number for one in looked} - {*numbers}:
            self._kill(number)
        self._open(numbers)
        for one in [*self._opening.values()] if wish.devices is None else ():
            self._left_out.append(f"{self._unanswered(one.number)}; it is used when it answers")
        if len(self.opened) < wish.fewest:
            raise EnvironmentUnmet(wish.too_few(len(self.opened), self._left_out))
        self.remarks += [f"left out: {reason}" for reason in self._left_out]

    def _look(self) -> list[Looked]:
        """Start a process beside each device; what enough of them see. What is missing is asked of
        the cluster.
        """
        wish, device = self._wish, self._wanted.device
        looked: list[Looked] = []
        first_s = self._began_s
        with Demand(self._say) as demand:
            while wish.waits or time.monotonic() < self._began_s + PLACED_S:
                for number in self._new_seats(JOIN_EVERY_S):
                    self._looking[self._start(number).look.remote(device)] = number
                is_late = time.monotonic() > first_s + LATE_S
                missing = wish.missing(looked, 0 if is_late else len(self._looking))
                if not wish.missing(looked) and (wish.devices or is_late or not self._looking):
                    break
                if missing and (wish.devices or wish.waits):
                    demand.ask(missing, device, self._seats.values())
                elif not self._looking:
                    break
                for asked in self._answers(self._looking):
                    number = self._looking.pop(asked)
                    found = answer_of(asked, 0.0)
                    if why := found if isinstance(found, str) else self._other_code(found):
                        self._leave_out(number, why)
                        continue
                    first_s = first_s if looked else time.monotonic()
                    kind, monitor = found["kind"], found["memory_monitor"]
                    looked.append(Looked(number=number, kind=kind, memory_monitor=monitor))
        return looked

    def _open(self, numbers: Sequence[int]) -> None:
        """Until as many are open as are wished for; in place of one that cannot be, the next."""
        wish, began_s = self._wish, time.monotonic()
        most = wish.devices or MOST_DEVICES
        late = [*self._looking.values()]  # they are asked too; one that is free by now answers
        self._looking.clear()
        rest = [*numbers, *late]
        while len(self.opened) < most:
            while rest and len(self.opened) + len(self._opening) < most:
                self._begin(rest.pop(0), inf, is_new=True)
            numbers = [one.number for one in self._opening.values()]
            is_over = time.monotonic() > began_s + READY_S
            is_short = len(self.opened) < wish.fewest
            if not is_short and (is_over or not {*numbers} - {*late}):
                break
            if not numbers or (is_over and not wish.waits):
                break
            for asked in self._answers(self._opening):
                number = self._opening[asked].number
                if isinstance(found := self._settle(asked), str):
                    self._leave_out(number, found)
        if wish.devices is not None:
            self._opening.clear()
            for number in self._actors.keys() - self.opened.keys():
                self._kill(number)

    def _other_code(self, found: Mapping[str, Any]) -> str:
        return other_code(found["host"], found["fingerprint"], self._code)

    def _unanswered(self, number: int) -> str:
        waited_s = time.monotonic() - self._began_s
        return (
            f"{self._seats[number].host}: no answer within {waited_s:.0f} s: does other work hold"
            " its CPUs or GPU? `ray status` shows it"
        )

    def _leave_out(self, number: int, why: str) -> None:
        self._kill(number)
        self._left_out.append(f"{self._seats[number].host}: {why}")

    def _answers(self, awaited: Mapping[Any, Any]) -> list[Any]:
        """Those that have come, after at most POLL_S. Raises what `check` raises."""
        self._check()
        if not awaited:
            time.sleep(POLL_S)
            return []
        ready: list[Any] = ray.wait([*awaited], num_returns=len(awaited), timeout=POLL_S)[0]
        return ready

    # ---- the run ---------------------------------------------------------------------------------

    @property
    def is_growing(self) -> bool:
        """Whether a device is being opened that was not there when the run began."""
        return any(one.is_new and one.until < inf for one in self._opening.values())

    def send(self, number: int, name: str, content: Content) -> str:
        """Put a file into a device's folder, through Ray's memory; why it cannot be there, or "".

        A device that is lost meanwhile says so when it is asked for something next.
        """
        asked = self._actors[number].keep.remote(name, content)
        answer = self._wait({number: asked}, SENT_S)[number]
        return answer.get("why", "") if isinstance(answer, dict) else ""  # its next one says it

    def try_attachments(
        self, number: int, attached: Mapping[str, tuple[str, Told]], budget_bytes: int
    ) -> Tried:
        """As NodeDevice.try_attachments. Raises EnvironmentUnmet."""
        asked = self._actors[number].call.remote("try_attachments", attached, budget_bytes)
        found = self._wait({number: asked}, READY_S + OPEN_S * len(attached))[number]
        return Tried(*self._useful(number, found))

    def configure(
        self, spec: RunSpec, attached: Mapping[str, Told], attempts: Mapping[str, int]
    ) -> None:
        """For every device, also for those that come back or join. Raises Refusal."""
        self._given = [ray.put(spec), ray.put(attached), ray.put(attempts)]
        self._opening = {
            self._configured(one.number, asked): one for asked, one in self._opening.items()
        }
        asked = {
            number: self._actors[number].call.remote("configure", *self._given)
            for number in self.opened
        }
        for number, answer in self._wait(asked, ANSWER_S).items():
            self._useful(number, answer)

    def start(self, number: int, work: Units, wall_share: float, *, every: bool) -> None:
        """As NodeDevice.measure."""
        stream = self._actors[number].measure.remote(work, wall_share, every=every)
        self._streams[stream] = number

    def messages(self, timeout_s: float) -> Iterator[tuple[int, Message]]:
        """What has come since the last call, at least one message if one comes in time.

        Raises RuntimeError for a bug of ours in a device's process.
        """
        with suppress(EnvironmentUnmet):  # a node that joined has nothing to measure on
            self._look_for_more()
        self._metrics.devices(len(self._streams), len(self.opened))
        if not (waiting := [*self._streams, *self._opening]):
            time.sleep(timeout_s)
        elif ray.wait(waiting, num_returns=1, timeout=timeout_s, fetch_local=False)[0]:
            every = len(waiting)
            ready, _ = ray.wait(waiting, num_returns=every, timeout=0, fetch_local=False)
            for one in ready:
                if one in self._opening:
                    yield self._answered(one)
                    continue
                number = self._streams[one]
                for message in self._next(one):
                    self._metrics.heard(self._seats[number].host, message)
                    yield number, message
        for asked, one in list(self._opening.items()):
            if time.monotonic() > one.until:
                yield self._answered(asked, "it did not answer in time")

    def close(self) -> None:
        """Idle devices end in order, the others at once."""
        busy = {*self._streams.values(), *(one.number for one in self._opening.values())}
        idle = [number for number in self._actors if number not in busy]
        with suppress(RayError, OSError):
            asked = [self._actors[number].call.remote("close") for number in idle]
            ray.wait(asked, num_returns=len(asked), timeout=CLOSE_S) if asked else None
        for number in list(self._actors):
            self._kill(number)

    # ---- of one device ---------------------------------------------------------------------------

    def _next(self, stream: Any) -> Sequence[Message]:
        number = self._streams[stream]
        try:
            said: Sequence[Message] = ray.get(next(stream))
        except StopIteration:
            del self._streams[stream]
            return [Done()]
        except RayTaskError as error:
            raise RuntimeError(
                f"in the process beside {self._seats[number].host}:\n{error}"
            ) from None
        except RayError as error:
            del self._streams[stream]
            self._kill(number)
            self._begin(number, time.monotonic() + BACK_S, is_new=False)
            return [lost_by(error)]
        return said

    def _new_seats(self, every_s: float) -> range:
        """The numbers of devices on nodes that have joined since the last look."""
        first, now = len(self._seats), time.monotonic()
        if now >= self._next_look_s:
            self._next_look_s = now + every_s
            nodes, known = ray.nodes(), {*self._known}
            self._known |= {node["NodeID"] for node in nodes if node["Alive"]}
            seats = seats_of(nodes, self._wanted.device, known)
            self._seats |= enumerate(seats, start=first)
        return range(first, len(self._seats))

    def _look_for_more(self) -> None:
        """Begin to open the devices of nodes that have joined, as many as are wished for."""
        room = (self._wish.devices or MOST_DEVICES) - len(self._actors)
        if room > 0:
            for number in self._new_seats(LOOK_EVERY_S)[:room]:
                self._begin(number, time.monotonic() + PLACED_S + READY_S, is_new=True)

    def _start(self, number: int) -> Any:
        """A process beside a device, which Ray lists by the number and host of the device."""
        seat = self._seats[number]
        self._starts[number] += 1
        again = f" ({self._starts[number]})" if self._starts[number] > 1 else ""
        self._actors[number] = start_actor(seat, f"attnbench {number + 1} on {seat.host}{again}")
        return self._actors[number]

    def _begin(self, number: int, until: float, *, is_new: bool) -> None:
        """Open a device that was looked at, has joined, or was lost: on its node only, where Ray
        has no process if the node is dead; its lock may still be held by what is ending.
        """
        actor = self._actors.get(number) or self._start(number)
        wait, host = self._wanted.wait or not is_new, self._seats[number].host
        wanted = ray.put(replace(self._wanted, wait=wait, host=host))
        asked = actor.join.remote(self._wanted.device, self._kind, self._code, [wanted])
        self._opening[self._configured(number, asked)] = Opening(number, until, is_new)

    def _configured(self, number: int, asked: Any) -> Any:
        """The answer of a device that is opened, once it is configured too if a run has begun."""
        return self._actors[number].configured.remote(asked, self._given) if self._given else asked

    def _settle(self, asked: Any, why: str = "") -> Opened | str:
        """What became of a device that was being opened; `why` there is no answer."""
        number = self._opening.pop(asked).number
        found: Opened | str = why or answer_of(asked, 0.0)
        if isinstance(found, Opened):
            self.opened[number] = found
        else:
            self._kill(number)
        return found

    def _answered(self, asked: Any, why: str = "") -> tuple[int, Message]:
        """The same, while others measure."""
        number, _, is_new = self._opening[asked]
        found = self._settle(asked, why)
        if isinstance(found, Opened):
            return number, Ready(found)
        if is_new:
            return number, Remark(f"{self._seats[number].host} is not used: {found}")
        return number, Gone(found)

    def _kill(self, number: int) -> None:
        actor = self._actors.pop(number, None)
        if actor is not None:
            with suppress(RayError, ValueError):
                ray.kill(actor)

    def _wait(self, asked: Mapping[int, Any], timeout_s: float) -> dict[int, Any]:
        """The answers, or in words why there is none. Raises what `check` raises."""
        deadline, left = time.monotonic() + timeout_s, list(asked.values())
        while left and time.monotonic() < deadline:
            self._check()
            _, left = ray.wait(left, num_returns=len(left), timeout=POLL_S)
        return {number: answer_of(one, timeout_s) for number, one in asked.items()}

    def _useful(self, number: int, answer: Any) -> Any:
        """Raises EnvironmentUnmet for words in place of an answer."""
        if isinstance(answer, str):
            raise EnvironmentUnmet(f"{self._seats[number].host}: {answer}")
        return answer
