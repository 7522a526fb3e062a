"""Devices elsewhere that measure nothing: they answer what a test says, and die when it wants."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attnbench.harness.cases.case import Case
from attnbench.harness.fleet.remote import Done, Gone, Lost, Message, Opened, Ready, Running
from attnbench.harness.fleet.shipping import Content
from attnbench.harness.rows.record import Planned, Record, Status
from attnbench.harness.run.spec import RunSpec
from attnbench.harness.run.studies import Told
from attnbench.harness.scenario.shards import Units
from attnbench.harness.studies.attachments import Tried

ENVIRONMENT = {
    "device_uuid": None,
    "device_name": None,
    "cpu": "fake",
    "torch": "2.13.0",
    "attnbench": "0",
    "device": "cpu",
    "allocator": {},
}


def opened(number: int, **facts: Any) -> Opened:
    where = {"host": f"host{number}", "device_uuid": None, "device_name": "fake"}
    return Opened(
        device="cpu", where=where, environment={**ENVIRONMENT, **facts}, free_bytes=1 << 30
    )


def row(one: Planned, number: int) -> Record:
    values: dict[str, Any] = {"device": "cpu", "attempt": 1}
    values |= {"host": f"host{number}", "device_name": "fake"}
    if isinstance(one, Case):
        values |= {"block_ms": [[[1.0]]], "exactness": "exact", "spent_s": 1.0}
    return Record.of(one, Status.OK, "", values)


class FakeFleet:
    """`dies`: asked with the number of the device and what it would measure next; a message in
    place of the row, after which it comes back unless `back` is false.
    """

    def __init__(
        self,
        count: int,
        dies: Callable[[int, Planned], Lost | None] = lambda number, one: None,
        *,
        back: bool = True,
    ) -> None:
        self.opened: Mapping[int, Opened] = {number: opened(number) for number in range(count)}
        self.remarks: Sequence[str] = ()
        self.started: list[tuple[int, Units]] = []
        self.sent: list[tuple[int, str]] = []
        self.refuses = ""
        self._dies, self._back = dies, back
        self._queue: deque[tuple[int, Message]] = deque()

    is_growing = False

    def send(self, number: int, name: str, content: Content) -> str:
        self.sent.append((number, name))
        return self.refuses

    def try_attachments(
        self, number: int, attached: Mapping[str, tuple[str, Told]], budget_bytes: int
    ) -> Tried:
        return Tried([], [])

    def configure(
        self, spec: RunSpec, attached: Mapping[str, Told], attempts: Mapping[str, int]
    ) -> None:
        self.attached = attached

    def start(self, number: int, work: Units, wall_share: float, *, every: bool) -> None:
        self.started.append((number, work))
        for one in work.planned:
            self._queue.append((number, Running(one.id, "latency")))
            if (lost := self._dies(number, one)) is not None:
                self._queue.append((number, lost))
                again = Ready(self.opened[number]) if self._back else Gone("its Ray node died")
                self._queue.append((number, again))
                return
            self._queue.append((number, row(one, number)))
        self._queue.append((number, Done()))

    def messages(self, timeout_s: float) -> Iterator[tuple[int, Message]]:
        for _ in range(len(self._queue)):
            yield self._queue.popleft()
