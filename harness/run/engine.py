"""How to run, and where: an engine opens devices, which measure what a run plans; what their
workers say of machine and software is compared.

This machine is one (session.py); a pack may bring others (`attnbench run --on NAME`).
"""

import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ..devices.host import CHOICE
from ..process.child import AllowImport
from ..rows.run_files import COMPARED_FACTS, Document
from .listener import Listener
from .run_rows import RunRows

Environment = Mapping[str, Any]
"""The facts that a worker collected."""


class Change(NamedTuple):
    """A fact of the environment that is not as it was when the run began."""

    fact: str
    then: Any
    now: Any


def measured_on(environment: Environment) -> dict[str, str | None]:
    """The fields of a row that say which device of which machine measured it."""
    return {
        "host": platform.node() or None,
        "device_uuid": environment["device_uuid"],
        "device_name": environment["device_name"] or environment["cpu"],
    }


def changes(then: Environment, now: Environment) -> list[Change]:
    """The facts that are not equal, of settings all but which GPU is meant."""

    def value(environment: Environment, fact: str) -> Any:
        found = environment.get(fact)
        if not isinstance(found, Mapping):
            return found
        return {name: one for name, one in found.items() if name != CHOICE}

    values = ((fact, value(then, fact), value(now, fact)) for fact in COMPARED_FACTS)
    return [Change(*one) for one in values if one[1] != one[2]]


def unlike(then: Environment, now: Environment) -> list[Change]:
    """The same, but for which of equal devices they are."""
    return [one for one in changes(then, now) if one.fact != "device_uuid"]


class Devices(Protocol):
    """Open and locked, of one kind and with equal software. `free_bytes`: of memory, the least of
    all. `listed`: as `devices` of run.json, if it has them.
    """

    @property
    def environment(self) -> Environment: ...
    @property
    def free_bytes(self) -> int: ...
    @property
    def listed(self) -> list[Document]: ...

    def attach(self, budget_bytes: int) -> None:
        """Open every attachment. Raises Refusal with what is wrong."""

    def measure(self, rows: RunRows) -> None:
        """The whole run. If a signal ends it, what has no row yet gets one. Raises Refusal."""


class Engine(Protocol):
    def open(
        self,
        device: str,
        backends: Iterable[str],
        options: "RunOptions",
        /,
    ) -> AbstractContextManager[Devices]:
        """Devices until the end. `device`: cpu, cuda or auto. Raises Refusal if there is none, or
        one cannot be used.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run, whatever is measured.

    `wait`: for another run on the same device to end. `held_device`: "cpu" or a GPU's UUID, if the
    caller holds its lock. `embedded`: in a process that goes on after the run, see Signals.
    `allow_import`: of user modules that backends are named by. `engine`: whose devices measure;
    None: this machine's.
    """

    command: Sequence[str]
    listener: Listener
    wait: bool = False
    held_device: str | None = None
    embedded: bool = False
    allow_import: AllowImport = False
    engine: Engine | None = None
