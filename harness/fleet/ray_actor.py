"""A process that Ray starts beside a device: what it is asked, and what Ray's errors mean."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
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
    RuntimeEnvSetupError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ..files.errors import Refusal, first_line
from ..files.printable import visible
from ..scenario.shards import Units
from .node_device import NodeDevice
from .own_files import PACKAGES, sent_folders
from .ray_seats import RESOURCE, Seat, other_code
from .remote import Lost, Opened, Said
from .shipping import Content

MEMORY_MONITOR = "RAY_memory_monitor_refresh_ms"
NODE = ("node has died", "node died", "node failure", "node is dead", "Node is dead")


class RayActor:
    """A NodeDevice that is called from the thread in which Ray calls us, and works in one of its
    own. What other code could not read is given within a list, as a reference.
    """

    def __init__(self) -> None:
        self._said: SimpleQueue[Said | None] = SimpleQueue()
        self._device = NodeDevice(self._said.put)
        self._thread = ThreadPoolExecutor(1, "measuring")

    def look(self, device: str) -> dict[str, Any]:
        """And whether Ray's memory monitor is on, if that is known."""
        monitor = os.environ.get(MEMORY_MONITOR, "") != "0"
        return {**NodeDevice.look(device), "memory_monitor": monitor}

    def keep(self, name: str, content: Content) -> dict[str, str]:
        """`why` it could not be kept, if so."""
        why = self._device.keep(name, content)
        return {"why": why} if why else {}

    def call(self, method: str, *arguments: Any) -> Any:
        """A method of the NodeDevice, in the measuring thread."""
        return self._thread.submit(getattr(self._device, method), *arguments).result()

    def join(
        self, device: str, kind: str, code: Mapping[str, Any], wanted: Sequence[Any]
    ) -> Opened | str:
        """Open a device of this kind, for a driver with this code; or why not."""
        found = self.look(device)
        if found["kind"] != kind:
            return f"it is {visible(found['kind'])}, and the run measures on {visible(kind)}"
        if why := other_code(found["host"], found["fingerprint"], code):
            return why
        packages = map(Path, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        there = [one for one in packages if one.name.startswith(PACKAGES)]
        try:
            opened: Opened = self.call("open", sent_folders(ray.get(wanted[0]), there))
        except Refusal as refusal:
            return str(refusal)
        return opened

    def configured(self, opened: Opened | str, given: Sequence[Any]) -> Opened | str:
        """What `join` has answered; then it can measure. `given`: as NodeDevice.configure."""
        if isinstance(opened, Opened):
            self.call("configure", *ray.get(list(given)))
        return opened

    def measure(self, work: Units, wall_share: float, *, every: bool) -> Iterator[list[Said]]:
        """What the device says, as it says it; together, what it says at once."""
        measured = self._thread.submit(self._device.measure, work, wall_share, every=every)
        measured.add_done_callback(lambda _: self._said.put(None))
        together: list[Said | None] = []
        while not together or together[-1] is not None:
            together = [self._said.get()]
            while not self._said.empty():
                together.append(self._said.get())
            if found := [said for said in together if said is not None]:
                yield found
        measured.result()


def start_actor(seat: Seat, name: str) -> Any:
    """A process beside a device. Ray starts nothing again by itself: a process that Ray restarts
    has no device open, and what it was measuring is for the driver to give to whoever is free.
    """
    return (
        ray.remote(RayActor)
        .options(
            name=name,
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
        waited = f"no answer within {timeout_s:.0f} s"
        return f"{waited}: does other work hold its CPUs or GPU? `ray status` shows it"
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
    if isinstance(error, RuntimeEnvSetupError):
        return f"files of your backends do not get there ({visible(text.strip())[:200]})"
    if isinstance(error, RayActorError):
        if "ModuleNotFoundError" in text or "ImportError" in text:
            return "attnbench cannot be imported there; install it in the Python that Ray uses"
        return "its Ray worker process died"
    return visible(first_line(error))
