"""Devices of a Ray cluster: one actor beside each, and what comes back from it."""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import ray
from ray.exceptions import (
    ActorUnschedulableError,
    GetTimeoutError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RayTaskError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ..files.errors import EnvironmentUnmet, first_line
from ..files.printable import visible
from ..process.fingerprint import fingerprint
from ..process.worker_process import ANSWER_S, READY_S
from ..rows.record import Planned
from ..run.studies import OPEN_S, Told
from ..run.worker_pool import RunConfig
from ..scenario.shards import Units
from ..studies.attachments import Tried
from .node_device import SHARED_CORES, DeviceActor
from .ray_seats import RESOURCE, Looked, Seat, other_code, seats_of
from .remote import Done, Gone, Lost, Message, NodeWanted, Opened, Ready, Remark
from .shipping import Content

PLACED_S = 60.0  # until Ray has started a process beside a device
BACK_S = 60.0  # until a device that was lost is open again, or given up
MOST_DEVICES = 100_000
LOOK_EVERY_S = 5.0  # for nodes that have joined the cluster
SENT_S = 600.0  # until a file is kept
CLOSE_S = 5.0
POLL_S = 0.25
MOST_MESSAGES = 1000  # before the driver does something else
MEMORY_MONITOR = "RAY_memory_monitor_refresh_ms"
NODE = ("node has died", "node died", "node failure", "node is dead", "Node is dead")


class RayActor(DeviceActor):
    def look(self, device: str) -> dict[str, Any]:
        """And whether Ray's memory monitor is on, if that is known."""
        monitor = os.environ.get(MEMORY_MONITOR, "") != "0"
        return {**super().look(device), "memory_monitor": monitor}

    def join(
        self, device: str, kind: str, code: Mapping[str, Any], given: Sequence[Any]
    ) -> Opened | str:
        """`open` a device of this kind, for a driver with this code; or why not.

        `given`: a reference to the arguments, which other code could not read.
        """
        found = self.look(device)
        if found["kind"] != kind:
            return f"it is {visible(found['kind'])}, and the run measures on {visible(kind)}"
        if why := other_code(found["host"], found["fingerprint"], code):
            return why
        return self.open(*ray.get(given[0]))


class Opening(NamedTuple):
    """A device that is being opened while others measure. `is_new`: it was not there before."""

    number: int
    until: float
    is_new: bool


class RayFleet:
    """Holds the devices until closed. Ray kills its actors when this process ends."""

    def __init__(
        self, wanted: NodeWanted, check: Callable[[], None], nodes: Collection[str] = ()
    ) -> None:
        """`nodes`: the ids of those that are there; later ones join."""
        self.opened: dict[int, Opened] = {}
        self.remarks: list[str] = []
        if os.environ.get(SHARED_CORES):
            self.remarks.append("devices share the cores of a host: no time of this run counts")
        self._wanted = wanted
        self._check = check
        self._given: Any = None  # config and attempts
        self._seats: dict[int, Seat] = {}
        self._actors: dict[int, Any] = {}
        self._streams: dict[Any, int] = {}  # of what is measured now
        self._opening: dict[Any, Opening] = {}  # by the awaited answer
        self._known = set(nodes)
        self._kind, self._most = "", 0
        self._next_look_s = 0.0

    def look(self, seats: Sequence[Seat]) -> list[Looked]:
        """Start a process beside each device; what it sees. Raises EnvironmentUnmet."""
        self._seats = dict(enumerate(seats))
        self._actors = {number: start_actor(seat) for number, seat in self._seats.items()}
        answers = self._all("look", self._wanted.device, timeout_s=PLACED_S)
        found = [
            Looked(number=number, **self._useful(number, facts))
            for number, facts in answers.items()
        ]
        if on := {one.host for one in found if one.memory_monitor}:
            some = ", ".join(sorted(on)[:3])
            self.remarks.append(
                f"Ray's memory monitor may be on ({some}): it kills what is measured when a host's"
                f" memory is nearly full; {MEMORY_MONITOR}=0 before ray start turns it off"
            )
        return found

    def open(self, chosen: Sequence[Looked], count: int | None) -> None:
        """Lock the devices and start their first workers; the others are given back.

        One that cannot be opened is left out with a remark, unless `count` are wanted or none is
        left. Raises EnvironmentUnmet.
        """
        self._kind, self._most = chosen[0].kind, count or MOST_DEVICES
        for number in self._actors.keys() - {one.number for one in chosen}:
            self._kill(number)
        answers = self._all("open", self._wanted, timeout_s=READY_S)
        self.opened = {number: one for number, one in answers.items() if isinstance(one, Opened)}
        refused = answers.keys() - self.opened.keys()
        reasons = [f"{self._seats[number].host}: {answers[number]}" for number in sorted(refused)]
        if refused and (count is not None or not self.opened):
            raise EnvironmentUnmet(*reasons)
        for number in refused:
            self._kill(number)
        self.remarks += [f"left out: {reason}" for reason in reasons]

    @property
    def is_growing(self) -> bool:
        """Whether a device is being opened that was not there when the run began."""
        return any(one.is_new for one in self._opening.values())

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

    def configure(self, config: RunConfig, attempts: Mapping[str, int]) -> None:
        """For every device, also for those that come back or join. Raises Refusal."""
        self._given = (config, attempts)
        answers = self._all("call", "configure", *self._given, timeout_s=ANSWER_S)
        for number, answer in answers.items():
            self._useful(number, answer)

    def foresee(self, left: Sequence[Planned], budget_bytes: int) -> dict[str, Any] | None:
        """What a worker of one device says of cases before they run, and before `configure`."""
        first = next(iter(self.opened))
        asked = self._actors[first].call.remote("foresee", left, budget_bytes)
        answer = self._wait({first: asked}, ANSWER_S)[first]
        return None if isinstance(answer, str) else answer

    def start(self, number: int, work: Units, wall_share: float, *, every: bool) -> None:
        """As NodeDevice.measure."""
        stream = self._actors[number].measure.remote(work, wall_share, every=every)
        self._streams[stream] = number

    def messages(self, timeout_s: float) -> Iterator[tuple[int, Message]]:
        """What has come since the last call, at least one message if one comes in time.

        Raises RuntimeError for a bug of ours in a device's process.
        """
        self._look_for_more()
        for _ in range(MOST_MESSAGES):
            waiting = [*self._streams, *self._opening]
            if not waiting:
                time.sleep(timeout_s)
                return
            ready, _ = ray.wait(waiting, num_returns=1, timeout=timeout_s, fetch_local=False)
            timeout_s = 0.0
            if not ready:
                break
            if ready[0] in self._opening:
                yield self._answered(ready[0])
            else:
                yield self._streams[ready[0]], self._next(ready[0])
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

    def _next(self, stream: Any) -> Message:
        number = self._streams[stream]
        try:
            said: Message = ray.get(next(stream))
        except StopIteration:
            del self._streams[stream]
            return Done()
        except RayTaskError as error:
            raise RuntimeError(
                f"in the process beside {self._seats[number].host}:\n{error}"
            ) from None
        except RayError as error:
            del self._streams[stream]
            self._kill(number)
            self._begin(number, is_new=False)
            return lost_by(error)
        return said

    def _look_for_more(self) -> None:
        """Begin to open the devices of nodes that have joined, as many as are wanted."""
        now = time.monotonic()
        if now < self._next_look_s or len(self._actors) >= self._most:
            return
        self._next_look_s = now + LOOK_EVERY_S
        for node in ray.nodes():
            if not node["Alive"] or node["NodeID"] in self._known:
                continue
            self._known.add(node["NodeID"])
            with suppress(EnvironmentUnmet):  # it has nothing to measure on
                for seat in seats_of([node], self._wanted.device):
                    if len(self._actors) >= self._most:
                        return
                    number = 1 + max(self._seats)
                    self._seats[number] = seat
                    self._begin(number, is_new=True)

    def _begin(self, number: int, *, is_new: bool) -> None:
        """Open a device that has joined, or one that was lost: on its node only, where Ray has no
        process if the node is dead; its lock may still be held by what is ending.
        """
        actor = self._actors[number] = start_actor(self._seats[number])
        given = ray.put((replace(self._wanted, wait=self._wanted.wait or not is_new), self._given))
        asked = actor.join.remote(self._wanted.device, self._kind, fingerprint(), [given])
        until = time.monotonic() + (PLACED_S + READY_S if is_new else BACK_S)
        self._opening[asked] = Opening(number, until, is_new)

    def _answered(self, asked: Any, why: str = "") -> tuple[int, Message]:
        """What became of a device that was being opened; `why` there is no answer."""
        number, _, is_new = self._opening.pop(asked)
        opened = why or answer_of(asked, 0.0)
        if isinstance(opened, Opened):
            self.opened[number] = opened
            return number, Ready(opened)
        self._kill(number)
        if is_new:
            host = self._seats[number].host
            return number, Remark(f"{host} joined the cluster and is not used: {opened}")
        return number, Gone(opened)

    def _kill(self, number: int) -> None:
        actor = self._actors.pop(number, None)
        if actor is not None:
            with suppress(RayError, ValueError):
                ray.kill(actor)

    def _all(self, method: str, *arguments: Any, timeout_s: float) -> dict[int, Any]:
        """What every actor answers, by number."""
        asked = {
            number: getattr(actor, method).remote(*arguments)
            for number, actor in self._actors.items()
        }
        return self._wait(asked, timeout_s)

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


def start_actor(seat: Seat) -> Any:
    """A process beside a device. It is never started again by Ray, nor anything asked of it: what
    a lost process was doing is for the driver to decide.
    """
    return (
        ray.remote(RayActor)
        .options(
            num_cpus=seat.cpus,
            num_gpus=seat.gpus,
            resources={} if seat.gpus else {RESOURCE: 1},
            scheduling_strategy=NodeAffinitySchedulingStrategy(seat.node_id, soft=False),
            max_restarts=0,
            max_task_retries=0,
        )
        .remote()
    )


def answer_of(asked: Any, timeout_s: float) -> Any:
    """What was answered, or in words why nothing was."""
    try:
        return ray.get(asked, timeout=0)
    except GetTimeoutError:
        waited = f"no answer within {timeout_s:g} s"
        return f"{waited}; does other work hold its CPUs or GPU? `ray status` shows it"
    except RayError as error:
        return reason_of(error)


def lost_by(error: RayError) -> Lost:
    """Ray's texts name memory as a possible cause of any death; its type of error is sure."""
    if isinstance(error, OutOfMemoryError):
        return Lost(
            "Ray's memory monitor killed its process, because the host's memory was nearly full;"
            f" {MEMORY_MONITOR}=0 before ray start turns it off",
            out_of_memory=True,
        )
    return Lost(reason_of(error))


def reason_of(error: RayError) -> str:
    """In a few words; Ray's own texts have many lines."""
    text = str(error)
    if isinstance(error, RayTaskError):
        return visible(text.strip().rpartition("\n")[2])[:200]
    if isinstance(error, NodeDiedError | ActorUnschedulableError) or any(w in text for w in NODE):
        return "its Ray node died"
    if isinstance(error, ObjectLostError):
        return "its result was lost with its Ray node"
    if isinstance(error, RayActorError):
        if "ModuleNotFoundError" in text or "ImportError" in text:
            return "attnbench cannot be imported there; install it in the Python that Ray uses"
        return "its Ray worker process died"
    return visible(first_line(error))
