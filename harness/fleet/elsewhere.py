"""Devices elsewhere as the engine of a run: those of a cluster, open and equal."""

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..files.errors import EnvironmentUnmet, Stopped, option
from ..process.signals import Signals
from ..process.worker_process import Interrupted
from ..rows.run_files import Document
from ..run.engine import RunOptions
from ..run.environments import Environment, unlike
from ..run.run_rows import RunRows
from ..studies.attachments import Attachment
from .dispatch import run_on
from .node_device import settings_here
from .own_files import own_files
from .remote import NodeWanted, Opened
from .shipping import Shipping, shipped

if TYPE_CHECKING:
    from .ray_devices import RayFleet

    Say = Callable[[str], None]
    OpenFleet = Callable[
        [NodeWanted, Sequence[Path], Callable[[], None], Say], AbstractContextManager[RayFleet]
    ]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The engine of `attnbench run --on NAME`. `cluster`: opens devices of one kind,
    locked until the end, whose processes have the files of the second argument; it calls the third
    while it waits, and the fourth with what to say before the run begins.
    """

    cluster: "OpenFleet"

    @contextmanager
    def open(
        self,
        device: str,
        backends: Iterable[str],
        attachments: Sequence[Attachment],
        needs: Sequence[tuple[str, str]],
        options: RunOptions,
    ) -> Iterator["DevicesElsewhere"]:
        """With signals under control. Raises Refusal."""
        files = list(map(shipped, attachments))
        modules, folders = own_files(backends, allow_import=bool(options.allow_import))
        wanted = NodeWanted(
            device=device,
            allow_import=bool(options.allow_import),
            wait=options.wait,
            settings=settings_here(),
            needs=needs,
            folders=[folder.name for folder in folders],
        )
        with Signals(embedded=options.embedded) as signals:
            try:
                said = options.listener.remark
                opened = self.cluster(wanted, [*modules, *folders], signals.check, said)
                with opened as fleet:
                    refuse_unlike(list(fleet.opened.values()))
                    yield DevicesElsewhere(fleet, signals, Shipping(fleet, files))
            except Interrupted:  # while devices were opened: a run that has begun takes it itself
                raise Stopped(signals.received or signal.SIGINT) from None


@dataclass(frozen=True, slots=True)
class DevicesElsewhere:
    """Those of an open fleet."""

    fleet: "RayFleet"
    signals: Signals
    shipping: Shipping

    @property
    def opened(self) -> list[Opened]:
        return list(self.fleet.opened.values())

    @property
    def environment(self) -> Environment:
        return self.opened[0].environment

    @property
    def free_bytes(self) -> int:
        return min(one.free_bytes for one in self.opened)

    @property
    def listed(self) -> list[Document]:
        return [one.facts for one in self.opened]

    def attach(self, budget_bytes: int) -> list[str]:
        """Raises BadInput, EnvironmentUnmet."""
        return self.shipping.refuse_bad(budget_bytes)

    def measure(self, rows: RunRows) -> None:
        """Rows of what no device measured name none."""
        rows.remarks += self.fleet.remarks
        run_on(rows, self.fleet, self.signals, self.shipping)


def refuse_unlike(devices: Sequence[Opened]) -> None:
    """Raises EnvironmentUnmet unless all are of one kind, with the same software and settings."""
    first, *others = devices
    for one in others:
        for found in unlike(first.environment, one.environment)[:1]:
            raise EnvironmentUnmet(
                f"{one.host} has {found.fact} {found.now!r}, {first.host} {found.then!r}; a run"
                " measures with one, because rows of both would not be comparable: make them equal,"
                f" or choose devices with {option('device_kind')}"
            )
