"""Devices elsewhere as the engine of a run: those of a cluster, open and equal."""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files.errors import EnvironmentUnmet, Stopped
from ..process.signals import Signals
from ..process.worker_process import Interrupted
from ..rows.record import Planned
from ..run.engine import RunOptions, Wanted
from ..run.first_worker import Change, Environment, unlike
from ..run.run_rows import RunPlan, RunRows
from ..run.studies import Told
from ..run.worker_pool import RunConfig
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
    def open(self, wanted: Wanted, options: RunOptions) -> Iterator["DevicesElsewhere"]:
        """With signals under control. Raises Refusal."""
        files = list(map(shipped, wanted.attachments))
        modules, folders = own_files(wanted.backends, allow_import=bool(options.allow_import))
        node_wanted = NodeWanted(
            device=wanted.device,
            allow_import=bool(options.allow_import),
            wait=options.wait,
            settings=settings_here(),
            needs=wanted.needs,
            folders=[folder.name for folder in folders],
        )
        with Signals(embedded=options.embedded) as signals:
            try:
                said = options.listener.remark
                opened = self.cluster(node_wanted, [*modules, *folders], signals.check, said)
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
    def device(self) -> str:
        return self.opened[0].device

    @property
    def environment(self) -> Environment:
        return self.opened[0].environment

    @property
    def free_bytes(self) -> int:
        return min(one.free_bytes for one in self.opened)

    @property
    def listed(self) -> Sequence[Mapping[str, Any]]:
        return [one.facts for one in self.opened]

    def changes(self, meta: Mapping[str, Any]) -> list[Change]:
        """A run may go on on other devices of one kind, wherever its rows were measured."""
        return unlike(meta["environment"], self.environment)

    def attach(self, budget_bytes: int) -> tuple[Mapping[str, Told], list[str]]:
        """Raises BadInput, EnvironmentUnmet."""
        return self.shipping.told, self.shipping.refuse_bad(budget_bytes)

    def warnings(self, left: Sequence[Planned], config: RunConfig) -> list[str]:
        return []

    def measure(self, plan: RunPlan) -> RunRows:
        """Rows of what no device measured name none."""
        remarks = [*plan.remarks, *self.fleet.remarks]
        plan = replace(plan, config=replace(plan.config, measured_on={}), remarks=remarks)
        return run_on(plan, self.fleet, self.signals, self.shipping)


def refuse_unlike(devices: Sequence[Opened]) -> None:
    """Raises EnvironmentUnmet unless all are of one kind, with the same software and settings."""
    first, *others = devices
    for one in others:
        for found in unlike(first.environment, one.environment)[:1]:
            raise EnvironmentUnmet(
                f"{one.host} has {found.fact} {found.now!r}, {first.host} {found.then!r}; a run"
                " measures with one, because rows of both would not be comparable: make them equal,"
                " or choose devices with --device-kind"
            )
