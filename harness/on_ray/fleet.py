"""Devices of a Ray cluster: one actor beside each, and what comes back from it."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

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

from ..errors import EnvironmentUnmet, first_line
from ..printable import visible
from ..process.worker_process import ANSWER_S, READY_S
from ..record import Planned
from ..run.remote import Back, Done, Gone, Lost, Message, Opened, Said, Wanted
from ..run.worker_pool import RunConfig
from ..shards import Units
from .actor import MEMORY_MONITOR, DeviceActor
from .seats import RESOURCE, Looked, Seat

PLACED_S = 60.0  # until Ray has started a process beside a device
BACK_S = 60.0  # until a device that was lost is open again, or given up
CLOSE_S = 5.0
POLL_S = 0.25
MOST_MESSAGES = 1000  # before the driver does something else
NODE = ("node has died", "node died", "node failure", "node is dead", "Node is dead")


class RayFleet:
    """Holds the devices until closed. Ray kills its actors when this process ends."""

    def __init__(self, wanted: Wanted, check: Callable[[], None]) -> None:
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
        self._opening: dict[Any, tuple[int, float]] = {}  # by the awaited answer: until when

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

    def configure(self, config: RunConfig) -> None:
        self._config = config
        asked = {number: self._actors[number].configure.remote(config) for number in self.opened}
        for number, answer in self._wait(asked, ANSWER_S).items():
            if isinstance(answer, str):
                raise EnvironmentUnmet(f"{self.opened[number].host}: {answer}")

    def foresee(self, left: Sequence[Planned]) -> dict[str, Any] | None:
        first = next(iter(self.opened))
        asked = {first: self._actors[first].foresee.remote(left)}
        answer = self._wait(asked, ANSWER_S)[first]
        return None if isinstance(answer, str) else answer

    def start(self, number: int, work: Units, wall_share: float, *, every: bool) -> None:
        measure = self._actors[number].measure
        self._streams[number] = measure.remote(work, wall_share, every=every)

    def messages(self, timeout_s: float) -> Iterator[tuple[int, Message]]:
        """Raises RuntimeError for a bug of ours in a device's process."""
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
                yield self._came_back(one)
            else:
                yield numbers[one], self._next(numbers[one], one)
        yield from self._overdue()

    def close(self) -> None:
        """Idle devices end in order, the others at once."""
        idle = [number for number in self._actors if number not in self._streams]
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
        self._actors[number] = actor = start_actor(self._seats[number])
        asked = actor.open.remote(replace(self._wanted, wait=True))
        self._opening[asked] = number, time.monotonic() + BACK_S

    def _came_back(self, asked: Any) -> tuple[int, Message]:
        number, _ = self._opening.pop(asked)
        try:
            answer = ray.get(asked)
            if isinstance(answer, Opened):
                ray.get(self._actors[number].configure.remote(self._config), timeout=ANSWER_S)
                return number, Back(answer)
        except RayError as error:
            answer = reason_of(error)
        self._kill(number)
        return number, Gone(answer)

    def _overdue(self) -> Iterator[tuple[int, Message]]:
        for asked, (number, until) in list(self._opening.items()):
            if time.monotonic() > until:
                del self._opening[asked]
                self._kill(number)
                yield number, Gone(f"not back within {BACK_S:g} s")

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
