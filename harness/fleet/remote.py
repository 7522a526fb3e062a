"""What goes to devices elsewhere and comes back.

A process beside each device has a NodeDevice (node_device.py). ray_devices.py starts it, hands it
work and brings back what it says; it decides nothing: dispatch.py does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..rows.record import Record
from ..run.environments import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWanted:
    """How to open a device. `device`: cpu, cuda or auto. `settings`: of environment.SETTINGS, as
    they are where the run was started. `needs`: packages, each with the extra that brings it.
    `host`: what rows call its host, if it has a name here. `folders`: of backends, by name, that
    the engine brings there.
    """

    device: str
    allow_import: bool = False
    wait: bool = False
    settings: Mapping[str, str]
    needs: Sequence[tuple[str, str]] = ()
    host: str = ""
    folders: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A device that is ready and locked. `device`: cpu or cuda. `where`: the fields of a row that
    name it.
    """

    device: str
    where: Mapping[str, str | None]
    environment: Environment
    free_bytes: int

    @property
    def host(self) -> str:
        return self.where["host"] or "a host without a name"

    @property
    def facts(self) -> dict[str, Any]:
        """As an entry of `devices` in run.json."""
        return {**self.where, "environment": dict(self.environment)}


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
    """What was added to a log of a device; or a model that a study saved, whole, before the row of
    its study.
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
