"""The first worker of a run: it reports machine and software before anything is planned."""

import platform
import signal
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

from ..devices.host import CHOICE
from ..devices.nvml import has_gpu
from ..devices.this_device import NO_TORCH, no_device
from ..files.errors import EnvironmentUnmet, Stopped
from ..process.child import ALLOW_IMPORT, AllowImport
from ..process.device_lock import device_lock
from ..process.fork_server import ForkServer
from ..process.signals import Signals
from ..process.worker_process import Interrupted, WorkerFailure, WorkerProcess
from ..rows.record import Status
from ..rows.run_files import COMPARED_FACTS

PROGRAM = "attnbench.harness.worker.serve"

Environment = Mapping[str, Any]
"""The facts that a worker collected."""


class Change(NamedTuple):
    """A fact of the environment that is not as it was when the run began."""

    fact: str
    then: Any
    now: Any


def start_worker(
    device: str,
    wake_fd: int | None = None,
    *,
    allow_import: AllowImport = False,
    server: ForkServer | None = None,
) -> WorkerProcess:
    """A worker that is ready, a fork of `server` if there is one. `allow_import`: of user modules.

    Raises WorkerFailure and Interrupted.
    """
    folders = allow_import if isinstance(allow_import, tuple) else ()
    arguments = (device, *([ALLOW_IMPORT, *folders] if allow_import else ()))
    start = partial(WorkerProcess, PROGRAM, *arguments, wake_fd=wake_fd, server=server)
    worker = start()
    try:
        worker.wait_ready()
    except WorkerFailure as failure:
        if failure.status != Status.CRASHED or (worker.exit_code or 0) >= 0:
            raise
        worker = start()  # somebody killed it: that need not happen again
        worker.wait_ready()
    return worker


class Started(NamedTuple):
    """The first worker, and what others are forked from: None where a GPU may be used."""

    worker: WorkerProcess
    server: ForkServer | None


@contextmanager
def first_worker(
    wanted: str, signals: Signals, *, allow_import: AllowImport = False
) -> Iterator[Started]:
    """Start it, and end it at the end. Raises Refusal if the machine lacks what is wanted."""
    if find_spec("torch") is None:
        raise EnvironmentUnmet(NO_TORCH)
    worker: WorkerProcess | None = None
    on_cpu = wanted == "cpu" or (wanted == "auto" and not has_gpu())
    server = ForkServer(PROGRAM) if on_cpu else None
    try:
        worker = start_worker(wanted, signals.wake_fd, allow_import=allow_import, server=server)
        if why := worker.ready.why:
            found = no_device(wanted, why)
            raise EnvironmentUnmet(f"{found}; run with --device cpu, or see attnbench doctor")
        yield Started(worker, server)
    except Interrupted:
        raise Stopped(signals.received or signal.SIGINT) from None
    except WorkerFailure as failure:
        printed = (failure.log_tail or "").rstrip().splitlines()
        reason = f"no worker could be started: {failure.reason}"
        raise EnvironmentUnmet(reason, *printed) from None
    finally:
        if worker is not None:
            worker.kill()
        if server is not None:
            server.close()


def measured_on(environment: Environment) -> dict[str, str | None]:
    """The fields of a row that say which device of which machine measured it."""
    return {
        "host": platform.node() or None,
        "device_uuid": environment["device_uuid"],
        "device_name": environment["device_name"] or environment["cpu"],
    }


def lock_device(
    worker: WorkerProcess, signals: Signals, *, wait: bool, held_device: str | None = None
) -> AbstractContextManager[None]:
    """The lock of the device that the worker uses, unless the caller holds it already."""
    device = worker.ready.environment.device_uuid or worker.ready.device
    if device == held_device:
        return nullcontext()
    return device_lock(device, wait=wait, check=signals.check)


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
