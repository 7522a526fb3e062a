"""How to run, and where: an engine opens devices, which measure what a run plans.

This machine is one (session.py); a pack may bring others (`attnbench run --on NAME`).
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from ..process.child import AllowImport
from ..rows.record import Planned
from ..studies import SAVING_NEEDS
from ..studies.attachments import Attachment
from .first_worker import Change, Environment
from .listener import Listener
from .run_rows import RunPlan, RunRows
from .studies import Told
from .worker_pool import RunConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a run wants opened. `device`: cpu, cuda or auto. `attachments`: that studies look at
    there. `save_models`: whether studies save the models that they train. `backends`: that run
    there.
    """

    device: str
    attachments: Sequence[Attachment] = ()
    save_models: bool = False
    backends: Sequence[str] = ()

    @property
    def needs(self) -> list[tuple[str, str]]:
        """Packages that every device must have, each with the extra that brings it."""
        saving = [SAVING_NEEDS] if self.save_models else []
        return sorted({*(one.needs for one in self.attachments), *saving})


class Devices(Protocol):
    """Open and locked, of one kind and with equal software. `device`: cpu or cuda. `free_bytes`: of
    memory, the least of all. `listed`: as `devices` of run.json, if it has them.
    """

    @property
    def device(self) -> str: ...
    @property
    def environment(self) -> Environment: ...
    @property
    def free_bytes(self) -> int: ...
    @property
    def listed(self) -> Sequence[Mapping[str, Any]]: ...

    def changes(self, meta: Mapping[str, Any]) -> list[Change]:
        """The facts that are not as they were when a run began."""

    def attach(self, budget_bytes: int) -> tuple[Mapping[str, Told], list[str]]:
        """Open every attachment: what workers are told of each, and remarks for the user.

        Raises Refusal with what is wrong.
        """

    def warnings(self, left: Sequence[Planned], config: RunConfig) -> list[str]:
        """What disturbs these devices now, and what that means for the run."""

    def measure(self, plan: RunPlan) -> RunRows:
        """The whole run. If a signal ends it, what has no row yet gets one. Raises Refusal."""


class Engine(Protocol):
    def open(self, wanted: Wanted, options: "RunOptions") -> AbstractContextManager[Devices]:
        """Devices until the end. Raises Refusal if there is none, or one cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run, whatever is measured.

    `wait`: for another run on the same device to end. `held_device`: "cpu" or a GPU's UUID, if the
    caller holds its lock. `gpu_uuid`: the GPU whose counters are read, if it is not the one that
    torch uses. `embedded`: in a process that goes on after the run, see Signals. `allow_import`: of
    user modules that backends are named by. `engine`: whose devices measure; None:
    this machine's.
    """

    command: Sequence[str]
    listener: Listener
    wait: bool = False
    held_device: str | None = None
    gpu_uuid: str | None = None
    embedded: bool = False
    allow_import: AllowImport = False
    engine: Engine | None = None
