"""One device of this host, for a run that is driven elsewhere: locked, with workers."""

import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from ...impls.discovery.registry import FOLDERS_VARIABLE
from ..devices.gpu_users import users
from ..devices.host import CHOICE, SETTINGS, cpu_name
from ..devices.nvml import SPLIT, Device, each_gpu, open_gpu, text
from ..files.errors import EnvironmentUnmet
from ..files.printable import visible
from ..files.safe_files import opened, sweep, temporary
from ..process.device_lock import device_lock
from ..process.signals import Signals
from ..process.worker_log import LOG_CAP_BYTES
from ..process.worker_process import ANSWER_S
from ..rows.run_store import LOGS
from ..run.environments import measured_on
from ..run.listener import Listener
from ..run.runtime import Runtime
from ..run.schedule import Schedule
from ..run.session import LOST_LOGS
from ..run.spec import RunSpec
from ..run.studies import StudyRunner, Told, tried
from ..run.wall_runner import WallRunner
from ..run.worker_pool import open_workers
from ..scenario.shards import Units
from ..studies.attachments import Tried
from .fingerprint import fingerprint
from .remote import File, NodeWanted, Opened, Predicted, Remark, Running, Said
from .shipping import Content, ShippedFolder

SHARED_CORES = "ATTNBENCH_TEST_SHARED_CORES"
"""Only for tests of what is around measuring: several devices may be open on the cores of one host,
each with a lock of its own. What they measure disturbs each other.
"""
MOST_FILE_BYTES = 1 << 30  # of a model; a log has LOG_CAP_BYTES
SAID_EVERY_S = 1.0  # messages are work beside what is measured


class NodeDevice(Listener):
    """`look`, `open`, `configure`, then `measure` as often as there is work, and `close`.

    Everything but `look` and `keep` must be called in one thread, which lives as long as the
    process: workers end with the thread that started them (process/guard.py).
    """

    def __init__(self, say: Callable[[Said], None]) -> None:
        """`say`: called in the measuring thread."""
        self._say = say
        self._stack = ExitStack()
        self._signals = Signals()  # none is taken over: whoever ends this process ends all
        self._sent: dict[Path, int] = {}  # bytes of each file
        self._losses: set[str] = set()  # that were said
        self._host = platform.node()
        self._next_s, self._every = 0.0, False

    @staticmethod
    def look(device: str) -> dict[str, Any]:
        """Plain facts, also for a driver of another version: `host`, `kind` and `fingerprint`.

        Starts nothing, imports no torch, takes no lock. `kind`: the name of the processor, or of
        the GPUs, as far as the driver tells before one of them is used.
        """
        kinds = {cpu_name() or "cpu"}
        if device == "cuda":
            gpus = [one.value for one in each_gpu().value or () if one.value]
            kinds = {str(text(gpu.query("nvmlDeviceGetName").value)) for gpu in gpus}
        kind = " or ".join(sorted(kinds))
        return {"host": platform.node(), "kind": kind, "fingerprint": fingerprint()}

    def open(self, wanted: NodeWanted) -> Opened:
        """Lock the device and start its first workers. Raises Refusal."""
        for package, extra in wanted.needs:
            if find_spec(package) is None:
                raise EnvironmentUnmet(
                    f"needs {package}, which is not installed there: pip install"
                    f" 'attnbench[{extra}]'"
                )
        _set(wanted.settings)
        self._host = wanted.host or self._host
        enter = self._stack.enter_context
        self._pool = enter(
            open_workers(wanted.device, self._signals, allow_import=wanted.allow_import)
        )
        worker = self._pool.first
        environment = worker.ready.environment.model_dump()
        if (name := environment["device_uuid"]) is not None:
            refuse_shared(name)
        name = name or worker.ready.device
        if os.environ.get(SHARED_CORES):
            name = f"{name}-{os.getpid()}"
        enter(device_lock(name, wait=wanted.wait, check=self._signals.check))
        place = Path(tempfile.gettempdir())
        sweep(place)  # of processes that were killed
        self._folder, given = (enter(temporary(place, is_folder=True))[0] for _ in range(2))
        (self._folder / LOGS).mkdir()
        self._given = ShippedFolder(given)
        return Opened(
            device=worker.ready.device,
            where=self._where(),
            environment=environment,
            free_bytes=worker.ask("free", ANSWER_S).available_bytes,
        )

    def keep(self, name: str, content: Content) -> str:
        """A file that the driver sends; why it cannot be kept, or "". In any thread."""
        return self._given.keep(name, content)

    def try_attachments(self, attached: Mapping[str, tuple[str, Told]], budget_bytes: int) -> Tried:
        """Open attachments of which all files were sent, each for its study. Raises
        WorkerFailure.
        """
        found = tried(
            {name: (study, self._given.here(told)) for name, (study, told) in attached.items()},
            self._pool.first.ready.device,
            budget_bytes,
            self._signals,
        )
        return Tried(*(list(map(self._given.named, some)) for some in found))

    def configure(
        self, spec: RunSpec, attached: Mapping[str, Told], attempts: Mapping[str, int]
    ) -> None:
        """What all cases are measured with. `attached`: what workers are told of each attachment,
        by names of the files that were sent. Raises WorkerFailure.
        """
        self._runtime = Runtime(
            spec=spec,
            pool=self._pool,
            listener=self,
            measured_on=self._where(),
            attached={name: self._given.here(one) for name, one in attached.items()},
            attempts=attempts,
        )
        self._pool.configure(spec, self._folder / LOGS)

    def measure(self, work: Units, wall_share: float, *, every: bool) -> None:
        """Say each record as soon as it is final, then what was printed meanwhile.

        `wall_share`: of the time for walls. `every`: say each step, not one per second.
        """
        runtime, pool = self._runtime, self._runtime.pool
        self._every = every
        if work.groups:
            for record in Schedule(runtime).records([group.cases for group in work.groups]):
                self._say(record)
        if work.walls:
            pool.close()  # walls are searched in processes that nothing else has used
        walls = WallRunner(runtime).records(work.walls, wall_share)
        for record in chain(walls, StudyRunner(runtime).records(work.studies)):
            self._say(record.with_reason(self._given.named(record.reason)))
        for file in self._files():
            self._say(file)
        for failure in pool.log_failures[:1]:
            self._say_once(f"{LOST_LOGS}: {failure}")

    def close(self) -> None:
        self._stack.close()

    def _where(self) -> dict[str, str | None]:
        found = measured_on(self._pool.first.ready.environment.model_dump())
        return {**found, "host": self._host or None}

    def running(self, what: str, phase: str) -> None:
        now = time.monotonic()
        if self._every or now >= self._next_s:
            self._next_s = now + SAID_EVERY_S
            self._say(Running(what, phase))

    def predicted(self, walls: Sequence[tuple[str, Mapping[str, Any]]], spent_s: float) -> None:
        self._say(Predicted(walls, spent_s))

    def _say_once(self, loss: str) -> None:
        """A remark on what is lost here; it stays true after each work."""
        if loss not in self._losses:
            self._losses.add(loss)
            self._say(Remark(f"{self._host}: {loss}"))

    def _files(self) -> Iterator[File]:
        """What was added to each log since it was sent last."""
        if not (self._folder / LOGS).is_dir():
            self._say_once(f"{self._folder} was removed there; logs are lost")
        for path in sorted((self._folder / LOGS).glob("*.log")):
            data = self._read(path, self._sent.get(path, 0), LOG_CAP_BYTES)
            self._sent[path] = self._sent.get(path, 0) + len(data)
            if data:
                yield File(path.name, data)

    def _read(self, path: Path, begin: int = 0, most: int = MOST_FILE_BYTES) -> bytes:
        try:
            with opened(path) as file:
                file.seek(begin)
                return file.read(most - begin)
        except OSError as error:
            self._say_once(f"{path.name}: cannot be read ({error.strerror}); it is lost")
            return b""


def _set(settings: Mapping[str, str]) -> None:
    """Environment variables of the workers that change numbers, as where the run was started.

    An engine may set others: Ray sets OMP_NUM_THREADS to the number of CPUs of a task. Which of
    several GPUs to use is the engine's to say.
    """
    for name in (*SETTINGS, FOLDERS_VARIABLE):
        if name != CHOICE:
            os.environ.pop(name, None)
            if name in settings:
                os.environ[name] = settings[name]


def settings_here() -> dict[str, str]:
    """Those that a device elsewhere gets from here."""
    return {name: os.environ[name] for name in SETTINGS if name in os.environ}


def refuse_shared(uuid: str) -> None:
    """Raises EnvironmentUnmet for a part of a GPU, and for one that other programs use.

    What the driver does not tell is not guessed.
    """
    gpu, reason = open_gpu(Device(uuid=uuid))
    if uuid.startswith("MIG-") or reason == SPLIT:
        raise EnvironmentUnmet(
            f"{uuid}: MIG splits this GPU, and an engine that counts whole GPUs cannot tell its"
            " parts apart; turn MIG off there, or measure a part with CUDA_VISIBLE_DEVICES=MIG-..."
            " and --shard"
        )
    found = users(gpu).value if gpu else None
    if found and found.foreign:
        one = found.foreign[0]
        raise EnvironmentUnmet(
            f"{uuid}: used by process {one.pid} ({visible(one.name or 'unknown')}); wanted a GPU"
            " that nobody else uses; end it, or leave this host out"
        )
