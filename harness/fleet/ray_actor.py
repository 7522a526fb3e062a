"""The process that Ray starts beside a device."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from ..files.errors import Refusal
from ..rows.record import Planned
from ..run.study_files import Told
from ..run.worker_pool import RunConfig
from ..scenario.shards import Units
from ..studies.attachments import Tried
from .node_device import NodeDevice
from .parts import Part
from .remote import NodeWanted, Opened, Said

T = TypeVar("T")
MEMORY_MONITOR = "RAY_memory_monitor_refresh_ms"


class Kept(NamedTuple):
    """Of a part of a file: why it could not be kept, or ""."""

    why: str


class DeviceActor:
    """A NodeDevice, called from the thread in which Ray calls us, working in one of its own.

    Ray streams what `measure` yields while the measuring goes on.
    """

    def __init__(self) -> None:
        self._said: SimpleQueue[Said | BaseException | None] = SimpleQueue()
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._device = NodeDevice(self._said.put)
        # A daemon: it must not keep a process alive that Ray wants to end.
        threading.Thread(target=self._work, name="measuring", daemon=True).start()

    def look(self, device: str) -> dict[str, Any]:
        """Plain facts: those of NodeDevice, and whether Ray's memory monitor is on, if that is
        known.
        """
        monitor = os.environ.get(MEMORY_MONITOR, "") != "0"
        return {**NodeDevice.look(device), "memory_monitor": monitor}

    def open(self, wanted: NodeWanted) -> Opened | str:
        """Or why it cannot be opened."""
        try:
            return self._call(lambda: self._device.open(wanted))
        except Refusal as refusal:
            return str(refusal)

    def keep(self, part: Part) -> Kept:
        return Kept(self._device.keep(part))

    def try_attachments(self, attached: Mapping[str, tuple[str, Told]], budget_bytes: int) -> Tried:
        return self._call(lambda: self._device.try_attachments(attached, budget_bytes))

    def configure(self, config: RunConfig) -> None:
        self._call(lambda: self._device.configure(config))

    def foresee(self, left: Sequence[Planned], budget_bytes: int) -> dict[str, Any] | None:
        return self._call(lambda: self._device.foresee(left, budget_bytes))

    def measure(self, work: Units, wall_share: float, *, every: bool) -> Iterator[Said]:
        """What the device says, as it says it."""

        def measure() -> None:
            try:
                self._device.measure(work, wall_share, every=every)
                self._said.put(None)
            except BaseException as error:  # noqa: BLE001 - raised again below, where Ray sees it
                self._said.put(error)

        self._calls.put(measure)
        while (said := self._said.get()) is not None:
            if isinstance(said, BaseException):
                raise said
            yield said

    def close(self) -> None:
        self._call(self._device.close)

    def _call(self, function: Callable[[], T]) -> T:
        """In the measuring thread. Raises what it raises."""
        answers: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

        def call() -> None:
            try:
                answers.put((function(), None))
            except BaseException as error:  # noqa: BLE001 - raised again below
                answers.put((None, error))

        self._calls.put(call)
        answer, error = answers.get()
        if error is not None:
            raise error
        return answer  # type: ignore[return-value] # None only if the function returned it

    def _work(self) -> None:
        while True:
            self._calls.get()()
