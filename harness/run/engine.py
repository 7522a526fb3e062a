"""How to run, and where: an engine opens devices, which measure what a run plans.

This machine is one (session.py); a pack may bring others (`attnbench run --on NAME`).
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from ..process.child import AllowImport
from ..rows.run_files import Document
from .environments import Environment
from .listener import Listener
from .run_rows import RunRows


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
