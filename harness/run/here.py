"""This machine as the engine of a run: its device, locked, and workers in each environment."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..cases.expected_time import Forecast
from ..process.signals import Signals
from ..process.worker_process import ANSWER_S
from ..rows.record import Planned
from ..studies import takes
from ..studies.attachments import refuse_problems
from .device_run import foresee
from .engine import RunOptions, Wanted
from .environments import (
    Change,
    Environments,
    Workers,
    changes,
    environments_of,
    first_of,
    first_workers,
    lock_device,
)
from .forecast import forecast_of
from .run_rows import RunPlan, RunRows
from .session import open_session
from .studies import Told, tried
from .worker_pool import RunConfig


class Here:
    """The engine of a run that names no other."""

    @contextmanager
    def open(self, wanted: Wanted, options: RunOptions) -> Iterator["DeviceHere"]:
        """With signals under control. Raises Refusal."""
        pythons, held = wanted.interpreters, options.held_device
        with (
            Signals(embedded=options.embedded) as signals,
            first_workers(
                wanted.device, signals, pythons, allow_import=options.allow_import
            ) as workers,
            lock_device(first_of(workers), signals, wait=options.wait, held_device=held),
        ):
            yield DeviceHere(wanted, workers, signals)


@dataclass(frozen=True, slots=True)
class DeviceHere:
    """The one device. `workers`: the first of each environment."""

    wanted: Wanted
    workers: Workers
    signals: Signals
    listed: Sequence[Mapping[str, Any]] = ()

    @property
    def device(self) -> str:
        return str(first_of(self.workers).ready["device"])

    @property
    def environments(self) -> Environments:
        return environments_of(self.workers)

    @property
    def free_bytes(self) -> int:
        answer = first_of(self.workers).ask({"op": "free"}, "free", ANSWER_S)
        return int(answer["available_bytes"])

    def changes(self, meta: Mapping[str, Any]) -> list[Change]:
        return changes(meta, self.environments)

    def attach(self, budget_bytes: int) -> tuple[Mapping[str, Told], list[str]]:
        """Raises BadInput, WorkerFailure, Interrupted."""
        some, pythons = self.wanted.attachments, self.wanted.interpreters
        attached = {one.name: (one.study, one.request()) for one in some}
        found = tried(attached, self.device, budget_bytes, pythons, self.signals)
        refuse_problems(found.problems, [takes(one.study) for one in some])
        return {name: told for name, (_, told) in attached.items()}, found.remarks

    def forecast(self, left: Sequence[Planned], config: RunConfig) -> Forecast | None:
        found = foresee(first_of(self.workers), left, config.budget_bytes)
        return forecast_of(left, config, found)

    def measure(self, plan: RunPlan) -> RunRows:
        with open_session(plan, self.workers, self.signals) as session:
            session.complete()
        return session.rows
