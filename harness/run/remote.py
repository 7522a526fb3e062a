"""What a run needs of devices elsewhere, whichever engine reaches them.

The engine starts a process beside each device, which has a NodeDevice (node_device.py), hands it
work and brings back what it says. It decides nothing: dispatch.py does.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ..process.interpreter import Interpreter
from ..record import Planned
from ..shards import Units
from .environments import Environments
from .worker_pool import RunConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How to open a device. `device`: cpu, cuda or auto. `settings`: of environment.SETTINGS, as
    they are where the run was started. `shared_cores`: only for tests, see `NodeDevice.open`.
    """

    device: str
    interpreters: Sequence[Interpreter] = ()
    allow_import: bool = False
    wait: bool = False
    settings: Mapping[str, str]
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
    def environment(self) -> Mapping[str, Any]:
        """Of the first environment."""
        return next(iter(self.environments.values()))


# ---- what comes back -----------------------------------------------------------------------------


class Running(NamedTuple):
    """A device is doing this now."""

    what: str
    phase: str


class Row(NamedTuple):
    """What is final of something planned: the driver makes a row of it."""

    case: str
    status: str
    reason: str
    values: Mapping[str, Any]


class Predicted(NamedTuple):
    """Walls with the fields of their rows that need no trial."""

    walls: Sequence[tuple[str, Mapping[str, Any]]]
    spent_s: float


class File(NamedTuple):
    """What was added to a log or to the telemetry of a device."""

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


class Back(NamedTuple):
    """A device that was lost is open again."""

    opened: Opened


class Gone(NamedTuple):
    """A device that was lost cannot be opened again."""

    reason: str


Said = Running | Row | Predicted | File | Remark
"""What a NodeDevice says while it works."""
Message = Said | Done | Lost | Back | Gone


class Fleet(Protocol):
    """Open devices, by number; all of one kind and with equal software."""

    @property
    def opened(self) -> Mapping[int, Opened]: ...

    @property
    def remarks(self) -> Sequence[str]:
        """For the user, before the run begins."""

    def configure(self, config: RunConfig) -> None:
        """For every device, also for those that come back. Raises Refusal."""

    def foresee(self, left: Sequence[Planned]) -> dict[str, Any] | None:
        """What a worker of one device says of cases before they run."""

    def start(self, number: int, work: Units, wall_share: float, *, every: bool) -> None:
        """As NodeDevice.measure."""

    def messages(self, timeout_s: float) -> Iterator[tuple[int, Message]]:
        """What has come since the last call, at least one message if one comes in time."""


class Cluster(Protocol):
    """Where devices are."""

    def open(self, wanted: Wanted, check: Callable[[], None]) -> AbstractContextManager[Fleet]:
        """Devices of one kind, locked until the end; `check` is called while waiting and may raise.

        Raises Refusal if there is none, if one cannot be used, or if their software differs.
        """
