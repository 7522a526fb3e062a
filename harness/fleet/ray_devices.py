"""Devices of a Ray cluster: one actor beside each, and what comes back from it."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
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
from ..process.worker_process import ANSWER_S, READY_S
from ..rows.record import Planned
from ..run.study_files import OPEN_S, Told
from ..run.worker_pool import RunConfig
from ..scenario.shards import Units
from ..studies.attachments import Tried
from .parts import Part
from .ray_actor import MEMORY_MONITOR, DeviceActor, Kept
from .ray_seats import RESOURCE, Looked, Seat, refuse_other_code, seats_of
from .remote import Back, Done, Gone, Joined, Lost, Message, NodeWanted, Opened, Remark, Said

PLACED_S = 60.0  # until Ray has started a process beside a device
BACK_S = 60.0  # until a device that was lost is open again, or given up
MOST_DEVICES = 100_000
LOOK_EVERY_S = 5.0  # for nodes that have joined the cluster
SENT_S = 120.0  # until a part of a file is kept
CLOSE_S = 5.0
POLL_S = 0.25
MOST_MESSAGES = 1000  # before the driver does something else
NODE = ("node has died", "node died", "node failure", "node is dead", "Node is dead")


class Step(StrEnum):
    """What a device is asked before it measures: a method of DeviceActor."""

    LOOK = "look"
    OPEN = "open"
    CONFIGURE = "configure"


class Opening(NamedTuple):
    """A device that is being opened while others measure. `is_new`: it was not there before."""

    number: int
    step: Step
    until: float
    is_new: bool
    opened: Opened | None = None


class RayFleet:
    """Holds the devices until closed. Ray kills its actors when this process ends."""

    def __init__(
        self, wanted: NodeWanted, check: Callable[[], None], nodes: Collection[str] = ()
    ) -> None:
        """`nodes`: the ids of those that are there; later ones join."""
        self.opened: dict[int, Opened] = {}
        self.remarks: list[str] = []
        if wanted.shared_cores:
            self.remarks.append("devices share the cores of a host: no time of this run counts")
        self._wanted = wanted
        self._check = check
        self._config: RunConfig | None = None
        self._seats: dict[int, Seat] = {}
        self._actors: dict[int, Any] = {}
        self._streams: dict[int, Any] = {}  # of what is measured now
        self._opening: dict[Any, Opening] = {}  # by the awaited answer
        self._known = set(nodes)
        self._kind, self._most = "", 0
        self._next_look_s = 0.0

    def look(self, seats: Sequence[Seat]) -> list[Looked]:
        """Start a process beside each device; what it sees. Raises EnvironmentUnmet."""
        self._seats = dict(enumerate(seats))
        for number, seat in self._seats.items():
            self._actors[number] = start_actor(seat)
        device = self._wanted.device
        asked = {number: actor.look.remote(device) for number, actor in self._actors.items()}
        answers = self._wait(asked, PLACED_S)
        found = []
        for number, seat in self._seats.items():
            facts = answers[number]
            if isinstance(facts, str):
                raise EnvironmentUnmet(f"{seat.host}: {facts}")
            found.append(Looked(number=number, **facts))
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
        kept = {one.number for one in chosen}
        for number in self._actors.keys() - kept:
            self._kill(number)
        self._seats = {number: self._seats[number] for number in sorted(kept)}
        asked = {number: self._actors[number].open.remote(self._wanted) for number in self._seats}
        answers = self._wait(asked, READY_S)
        refused = {number: one for number, one in answers.items() if isinstance(one, str)}
        reasons = [f"{self._seats[number].host}: {reason}" for number, reason in refused.items()]
        if refused and (count is not None or len(refused) == len(asked)):
            raise EnvironmentUnmet("\n".join(reasons))
        for number in refused:
            self._kill(number)
        self.remarks += [f"left out: {reason}" for reason in reasons]
        self.opened = {number: one for number, one in answers.items() if not isinstance(one, str)}

    @property
    def is_growing(self) -> bool:
        return any(one.is_new for one in self._opening.values())

    def send(self, number: int, parts: Iterable[Part]) -> str:
        """One part after the other, so that Ray's memory holds one of them."""
        for part in parts:
            asked = self._actors[number].keep.remote(part)
            answer = self._wait({number: asked}, SENT_S)[number]
            if not isinstance(answer, Kept):  # it is lost, which its next answer says
                return ""
            if answer.why:
                return answer.why
        return ""

    def try_attachments(
        self, number: int, attached: Mapping[str, tuple[str, Told]], budget_bytes: int
    ) -> Tried:
        asked = self._actors[number].try_attachments.remote(attached, budget_bytes)
        found = self._wait({number: asked}, READY_S + OPEN_S * len(attached))[number]
        if not isinstance(found, Tried):
            raise EnvironmentUnmet(f"{self.opened[number].host}: {found}")
        return found

    def configure(self, config: RunConfig) -> None:
        self._config = config
        asked = {number: self._actors[number].configure.remote(config) for number in self.opened}
        for number, answer in self._wait(asked, ANSWER_S).items():
            if isinstance(answer, str):
                raise EnvironmentUnmet(f"{self.opened[number].host}: {answer}")

    def foresee(self, left: Sequence[Planned], budget_bytes: int) -> dict[str, Any] | None:
        first = next(iter(self.opened))
        asked = {first: self._actors[first].foresee.remote(left, budget_bytes)}
        answer = self._wait(asked, ANSWER_S)[first]
        return None if isinstance(answer, str) else answer

    def start(self, number: int, work: Units, wall_share: float, *, every: bool) -> None:
        measure = self._actors[number].measure
        self._streams[number] = measure.remote(work, wall_share, every=every)

    def messages(self, timeout_s: float) -> Iterator[tuple[int, Message]]:
        """Raises RuntimeError for a bug of ours in a device's process."""
        self._look_for_more()
        for _ in range(MOST_MESSAGES):
            numbers = {stream: number for number, stream in self._streams.items()}
            waiting = [*numbers, *self._opening]
            if not waiting:
                time.sleep(timeout_s)
                return
            ready, _ = ray.wait(waiting, num_returns=1, timeout=timeout_s, fetch_local=False)
            timeout_s = 0.0
            if not ready:
                break
            one = ready[0]
            if one in self._opening:
                number = self._opening[one].number
                if (message := self._answered(one)) is not None:
                    yield number, message
            else:
                yield numbers[one], self._next(numbers[one], one)
        yield from self._overdue()

    def close(self) -> None:
        """Idle devices end in order, the others at once."""
        busy = {*self._streams, *(one.number for one in self._opening.values())}
        idle = [number for number in self._actors if number not in busy]
        with suppress(RayError, OSError):
            asked = [self._actors[number].close.remote() for number in idle]
            ray.wait(asked, num_returns=len(asked), timeout=CLOSE_S) if asked else None
        for number in list(self._actors):
            self._kill(number)

    # ---- of one device ---------------------------------------------------------------------------

    def _next(self, number: int, stream: Any) -> Message:
        try:
            said: Said = ray.get(next(stream))
        except StopIteration:
            del self._streams[number]
            return Done()
        except RayTaskError as error:
            raise RuntimeError(
                f"in the process beside {self._seats[number].host}:\n{error}"
            ) from None
        except RayError as error:
            del self._streams[number]
            self._kill(number)
            self._reopen(number)
            return lost_by(error)
        return said

    def _reopen(self, number: int) -> None:
        """On its node only: Ray has no process there if the node is dead. The lock may still be
        held by what is ending.
        """
        self._actors[number] = start_actor(self._seats[number])
        opening = Opening(number, Step.OPEN, time.monotonic() + BACK_S, is_new=False)
        self._ask(opening, replace(self._wanted, wait=True))

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
                    self._seats[number], self._actors[number] = seat, start_actor(seat)
                    opening = Opening(number, Step.LOOK, now + PLACED_S, is_new=True)
                    self._ask(opening, self._wanted.device)

    def _ask(self, opening: Opening, argument: object) -> None:
        asked = getattr(self._actors[opening.number], opening.step).remote(argument)
        self._opening[asked] = opening

    def _answered(self, asked: Any) -> Message | None:
        """What follows from an answer of a device that is being opened: the next question, or
        what is said of it.
        """
        one, now = self._opening.pop(asked), time.monotonic()
        try:
            answer = ray.get(asked)
        except RayError as error:
            return self._not_opened(one, reason_of(error))
        if one.step is Step.LOOK and not isinstance(answer, str):
            answer = self._unfit(Looked(number=one.number, **answer))
            if not answer:
                next_one = one._replace(step=Step.OPEN, until=now + READY_S)
                self._ask(next_one, self._wanted)
                return None
        if isinstance(answer, str):
            return self._not_opened(one, answer)
        if one.step is Step.OPEN:
            next_one = one._replace(step=Step.CONFIGURE, until=now + ANSWER_S, opened=answer)
            self._ask(next_one, self._config)
            return None
        assert one.opened is not None
        self.opened[one.number] = one.opened
        return Joined(one.opened) if one.is_new else Back(one.opened)

    def _unfit(self, looked: Looked) -> str:
        """Why a device that has joined the cluster cannot measure for this run, or ""."""
        if looked.kind != self._kind:
            return f"it is {visible(looked.kind)}, and the run measures on {visible(self._kind)}"
        try:
            refuse_other_code([looked])
        except EnvironmentUnmet as refusal:
            return str(refusal)
        return ""

    def _not_opened(self, one: Opening, why: str) -> Message:
        self._kill(one.number)
        if not one.is_new:
            return Gone(why)
        return Remark(f"{self._seats[one.number].host} joined the cluster and is not used: {why}")

    def _overdue(self) -> Iterator[tuple[int, Message]]:
        for asked, one in list(self._opening.items()):
            if time.monotonic() > one.until:
                del self._opening[asked]
                yield one.number, self._not_opened(one, "it did not answer in time")

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


def start_actor(seat: Seat) -> Any:
    """A process beside a device. It is never started again by Ray, nor anything asked of it: what
    a lost process was doing is for the driver to decide.
    """
    return (
        ray.remote(DeviceActor)
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
