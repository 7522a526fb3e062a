"""A process that Ray starts beside a device: it locks the device, and measures with workers of its
own what it is given.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ...impls.discovery.registry import FOLDERS_VARIABLE
from ..devices.host import CHOICE, SETTINGS
from ..devices.load import users
from ..devices.nvml import SPLIT, Device, open_gpu
from ..files.errors import EnvironmentUnmet, Refusal
from ..files.printable import visible
from ..process.device_lock import device_lock
from ..process.signals import Signals
from ..process.worker_process import ANSWER_S
from ..rows.record import Record
from ..run.engine import Environment, measured_on
from ..run.listener import Listener
from ..run.schedule import Schedule
from ..run.spec import RunSpec
from ..run.studies import StudyRunner
from ..run.wall_runner import WallRunner
from ..run.worker_pool import Runtime, open_workers
from ..scenario.shards import Units

SHARED_CORES = "ATTNBENCH_TEST_SHARED_CORES"
"""Only for tests of what is around measuring: several devices may be open on the cores of one host,
each with a lock of its own. What they measure disturbs each other.
"""
SAID_EVERY_S = 1.0  # messages are work beside what is measured


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWanted:
    """How to open a device. `device`: cpu or cuda. `kind`: a part of its name, "" for any.
    `settings`: the environment variables that change numbers. `folders`: names of folders of
    backends that Ray brings. `version`: of attnbench. `wait`: for its lock. `host`: what rows call
    its host.
    """

    device: str
    kind: str
    settings: Mapping[str, str]
    folders: Sequence[str]
    version: str
    allow_import: bool
    wait: bool
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A device that is ready and locked. `where`: the fields of a row that name it."""

    where: Mapping[str, str | None]
    environment: Environment
    free_bytes: int

    @property
    def facts(self) -> dict[str, Any]:
        """As an entry of `devices` in run.json."""
        return {**self.where, "environment": dict(self.environment)}


Said = Record | tuple[str, str]
"""A row that is final; or what is measured now, and its phase."""


class DeviceActor(Listener):
    """`open`, then `measure` as often as there is work."""

    def __init__(self) -> None:
        self._said: SimpleQueue[Said | None] = SimpleQueue()
        self._thread = ThreadPoolExecutor(1, "measuring")  # workers end with who started them
        self._stack = ExitStack()
        self._signals = Signals()  # none is taken over: whoever ends this process ends all
        self._runtime: Runtime | None = None
        self._next_s, self._every = 0.0, False

    def open(self, wanted: DeviceWanted) -> Opened | str:
        """Lock the device and start its first worker; or why it cannot be used."""
        try:
            return self._thread.submit(self._open, wanted).result()
        except Refusal as refusal:
            return str(refusal)

    def _open(self, wanted: DeviceWanted) -> Opened:
        """Raises Refusal."""
        use_settings(wanted.settings)
        there = (Path(place, name) for place in sys.path for name in wanted.folders)
        os.environ[FOLDERS_VARIABLE] = os.pathsep.join(str(one) for one in there if one.is_dir())
        enter = self._stack.enter_context
        self._pool = enter(
            open_workers(wanted.device, self._signals, allow_import=wanted.allow_import)
        )
        ready = self._pool.first.ready
        environment = ready.environment.model_dump()
        where = {**measured_on(environment), "host": wanted.host or None}
        if environment["attnbench"] != wanted.version:
            raise EnvironmentUnmet(
                f"has attnbench {environment['attnbench']}; wanted {wanted.version}, as here"
            )
        if wanted.kind.lower() not in str(where["device_name"]).lower():
            found = visible(str(where["device_name"]))
            raise EnvironmentUnmet(f"it is {found}, and the run measures on {wanted.kind}")
        if (name := environment["device_uuid"]) is not None:
            refuse_shared(name)
        name = name or ready.device
        if os.environ.get(SHARED_CORES):
            name = f"{name}-{os.getpid()}"
        enter(device_lock(name, wait=wanted.wait, check=self._signals.check))
        self._folder = Path(enter(tempfile.TemporaryDirectory()))
        self._where = where
        free_bytes = self._pool.first.ask("free", ANSWER_S).available_bytes
        return Opened(where=where, environment=environment, free_bytes=free_bytes)

    def measure(
        self,
        spec: RunSpec,
        attempts: Mapping[str, int],
        work: Units,
        wall_share: float,
        every: bool,
    ) -> Iterator[list[Said]]:
        """Each record as soon as it is final. `wall_share`: of the time for walls. `every`: say
        each step, not one per second.
        """
        self._every = every
        measured = self._thread.submit(self._measure, spec, attempts, work, wall_share)
        measured.add_done_callback(lambda _: self._said.put(None))
        while (said := self._said.get()) is not None:
            yield [said]
        measured.result()

    def _measure(
        self, spec: RunSpec, attempts: Mapping[str, int], work: Units, wall_share: float
    ) -> None:
        if self._runtime is None:
            self._runtime = Runtime(
                spec=spec,
                pool=self._pool,
                listener=self,
                measured_on=self._where,
                attempts=attempts,
            )
            self._pool.configure(spec, self._folder)
        runtime = self._runtime
        if work.groups:
            for record in Schedule(runtime).records([group.cases for group in work.groups]):
                self._said.put(record)
        if work.walls:
            self._pool.close()  # walls are searched in processes that nothing else has used
        walls = WallRunner(runtime).records(work.walls, wall_share)
        for record in chain(walls, StudyRunner(runtime).records(work.studies)):
            self._said.put(record)

    def running(self, what: str, phase: str) -> None:
        now = time.monotonic()
        if self._every or now >= self._next_s:
            self._next_s = now + SAID_EVERY_S
            self._said.put((what, phase))


def settings_here() -> dict[str, str]:
    """Environment variables of workers that change numbers."""
    return {name: os.environ[name] for name in SETTINGS if name in os.environ}


def use_settings(settings: Mapping[str, str]) -> None:
    """As where the run was started: Ray sets OMP_NUM_THREADS, for one. Which GPU, Ray says."""
    for name in {*SETTINGS} - {CHOICE}:
        os.environ.pop(name, None)
    os.environ.update({name: settings[name] for name in settings if name != CHOICE})


def refuse_shared(uuid: str) -> None:
    """Raises EnvironmentUnmet for a part of a GPU, and for one that other programs use.

    What the driver does not tell is not guessed.
    """
    gpu, reason = open_gpu(Device(uuid=uuid))
    if uuid.startswith("MIG-") or reason == SPLIT:
        raise EnvironmentUnmet(
            f"{uuid}: MIG splits this GPU, and Ray cannot tell its parts apart; turn MIG off there,"
            " or measure a part with CUDA_VISIBLE_DEVICES=MIG-... and --shard"
        )
    found = users(gpu).value if gpu else None
    if found and found.foreign:
        one = found.foreign[0]
        raise EnvironmentUnmet(
            f"{uuid}: used by process {one.pid} ({visible(one.name or 'unknown')}); wanted a GPU"
            " that nobody else uses; end it, or leave this host out"
        )
