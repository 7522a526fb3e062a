"""What a run needs of devices elsewhere, whichever engine reaches them.

The engine starts a process beside each device, which has a NodeDevice (node_device.py), hands it
work and brings back what it says. It decides nothing: dispatch.py does.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..process.interpreter import Interpreter
from ..rows.record import Planned, Record
from ..run.environments import Environments
from ..run.studies import Told
from ..run.worker_pool import RunConfig
from ..scenario.shards import Units
from ..studies.attachments import Tried

if TYPE_CHECKING:
    from .shipping import Content


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWanted:
    """How to open a device. `device`: cpu, cuda or auto. `settings`: of environment.SETTINGS, as
    they are where the run was started. `needs`: packages, each with the extra that brings it.
    `shared_cores`: only for tests, see `NodeDevice.open`.
    """

    device: str
    interpreters: Sequence[Interpreter] = ()
    allow_import: bool = False
    wait: bool = False
    settings: Mapping[str, str]
    needs: Sequence[tuple[str, str]] = ()
    shared_cores: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A device that is ready and locked. `device`: cpu or cuda. `where`: the fields of a row that
    name it.
    """

    device: str
    where: Mapping[str, str | None]
    environments: Environments
    free_bytes: int

    @property
    def host(self) -> str:
        return self.where["host"] or "a host without a name"

    @property
    def facts(self) -> dict[str, Any]:
        """As an entry of `devices` in run.json."""
        return {**self.where, "environment": dict(next(iter(self.environments.values())))}


# ---- what comes back: a Record is final, and the driver keeps one of each ------------------------


class Running(NamedTuple):
    """A device is doing this now."""

    what: str
    phase: str


class Predicted(NamedTuple):
    """Walls with the fields of their rows that need no trial."""

    walls: Sequence[tuple[str, Mapping[str, Any]]]
    spent_s: float


class File(NamedTuple):
    """What was added to a log or to the telemetry of a device; or a model that a study saved,
    whole, before the row of its study.
    """

    name: str
    data: bytes


class Remark(NamedTuple):
    """For the user."""

    text: str


class Done(NamedTuple):
    """The work is done; the device wants more."""


class Lost(NamedTuple):
    """The process beside the device is gone, with its work. `out_of_memory`: something ended it
    because its host had no memory left. The engine tries to open the device again.
    """

    reason: str
    out_of_memory: bool = False


class Ready(NamedTuple):
    """A device that was lost, or was not there when the run began, is open and configured."""

    opened: Opened


class Gone(NamedTuple):
    """A device that was lost cannot be opened again."""

    reason: str


Said = Running | Record | Predicted | File | Remark
"""What a NodeDevice says while it works."""
Message = Said | Done | Lost | Ready | Gone


class Fleet(Protocol):
    """Open devices, by number; all of one kind and with equal software."""

    @property
    def opened(self) -> Mapping[int, Opened]: ...

    @property
    def remarks(self) -> Sequence[str]:
        """For the user, before the run begins."""

    @property
    def is_growing(self) -> bool:
        """Whether a device is being opened that was not there when the run began."""

    def send(self, number: int, name: str, content: "Content") -> str:
        """Put a file into a device's folder; why it cannot be there, or "".

        A device that is lost meanwhile says so when it is asked for something next.
        """

    def try_attachments(
        self, number: int, attached: Mapping[str, tuple[str, Told]], budget_bytes: int
    ) -> Tried:
        """As NodeDevice.try_attachments. Raises EnvironmentUnmet."""

    def configure(self, config: RunConfig, attempts: Mapping[str, int]) -> None:
        """For every device, also for those that come back or join. Raises Refusal."""

    def foresee(self, left: Sequence[Planned], budget_bytes: int) -> dict[str, Any] | None:
        """What a worker of one device says of cases before they run, and before `configure`."""

    def start(self, number: int, work: Units, wall_share: float, *, every: bool) -> None:
        """As NodeDevice.measure."""

    def messages(self, timeout_s: float) -> Iterator[tuple[int, Message]]:
        """What has come since the last call, at least one message if one comes in time."""


OpenFleet = Callable[[NodeWanted, Callable[[], None]], AbstractContextManager[Fleet]]
"""Devices of one kind, locked until the end; the second argument is called while waiting and may
raise.

Raises Refusal if there is none, if one cannot be used, or if their software differs.
"""
