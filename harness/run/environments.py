"""The environments of a run: each has a first worker, which reports machine and software.

A run without `--python` has one environment, named None.
"""

import platform
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ..files.errors import EnvironmentUnmet, Stopped
from ..machine.settings import CHOICE
from ..machine.this_device import NO_TORCH, no_device
from ..process import events
from ..process.child import ALLOW_IMPORT, AllowImport
from ..process.device_lock import device_lock
from ..process.interpreter import Interpreter, check_interpreters, install_command, last_line
from ..process.signals import Signals
from ..process.worker_process import Interrupted, WorkerFailure, WorkerProcess
from ..rows.record import Status
from ..rows.run_files import COMPARED_FACTS

PROGRAM = "attnbench.harness.worker.serve"
COMPARED_IF_NAMED = ("python", "triton")
"""Further facts of a named environment: its versions are what a run of several compares."""

Workers = Mapping[str | None, WorkerProcess]
"""By the environment's name."""
Environments = Mapping[str | None, Mapping[str, Any]]
"""The facts that a worker collected in each."""


class Change(NamedTuple):
    """A fact of an environment (`python`) that is not as it was when the run began."""

    python: str | None
    fact: str
    then: Any
    now: Any

    @property
    def name(self) -> str:
        return self.fact if self.python is None else f"{self.fact} of {self.python}"


def start_worker(
    device: str,
    python: Path | None = None,
    wake_fd: int | None = None,
    *,
    allow_import: AllowImport = False,
    wait: bool = True,
) -> WorkerProcess:
    """A worker that is ready, unless the caller does not `wait`. `allow_import`: of user modules.

    Raises WorkerFailure and Interrupted.
    """
    folders = allow_import if isinstance(allow_import, tuple) else ()
    arguments = (device, *([ALLOW_IMPORT, *folders] if allow_import else ()))
    start = partial(
        WorkerProcess, PROGRAM, *arguments, python=python, wake_fd=wake_fd, events=events.WORKER
    )
    worker = start(judged=True)
    if wait:
        try:
            worker.wait_ready()
        except WorkerFailure as failure:
            if failure.status != Status.CRASHED or (worker.exit_code or 0) >= 0:
                raise
            worker = start(judged=True)  # somebody killed it: that need not happen again
            worker.wait_ready()
    return worker


@contextmanager
def first_workers(
    wanted: str,
    signals: Signals,
    interpreters: Sequence[Interpreter] = (),
    *,
    allow_import: AllowImport = False,
) -> Iterator[Workers]:
    """Start one worker per environment and end them all at the end.

    Raises Refusal if the machine or an interpreter lacks what is wanted.
    """
    workers: dict[str | None, WorkerProcess] = {}
    try:
        check_interpreters(interpreters)
        for one in interpreters or (None,):
            worker = _start(wanted, signals, one, allow_import=allow_import)
            workers[one.name if one else None] = worker
            wanted = worker.ready["device"]  # "auto" is decided once, for all environments
        _refuse_different_gpus(workers)
        yield workers
    except Interrupted:
        raise Stopped(signals.received or signal.SIGINT) from None
    except WorkerFailure as failure:
        printed = (failure.log_tail or "").rstrip().splitlines()
        reason = f"no worker could be started: {failure.reason}"
        raise EnvironmentUnmet(reason, *printed) from None
    finally:
        for worker in workers.values():
            worker.kill()


def _start(
    wanted: str, signals: Signals, interpreter: Interpreter | None, *, allow_import: AllowImport
) -> WorkerProcess:
    path = interpreter.path if interpreter else None
    if interpreter is None and find_spec("torch") is None:
        raise EnvironmentUnmet(NO_TORCH)
    try:
        worker = start_worker(wanted, path, signals.wake_fd, allow_import=allow_import)
    except WorkerFailure as failure:
        if interpreter is None:
            raise
        raise EnvironmentUnmet(
            f"{interpreter.flag}: no worker could be started:"
            f" {last_line(failure.log_tail or failure.reason)};"
            f" install what it needs: {install_command(interpreter.path)}"
        ) from None
    if worker.ready["why"]:
        worker.kill()
        found = no_device(wanted, worker.ready["why"])
        if interpreter is not None:
            wanted = "wanted one device for all environments"
            raise EnvironmentUnmet(f"{interpreter.flag}: {found}; {wanted}")
        raise EnvironmentUnmet(f"{found}; run with --device cpu, or see attnbench doctor")
    return worker


def _refuse_different_gpus(workers: Workers) -> None:
    found = {name: worker.ready["environment"]["device_uuid"] for name, worker in workers.items()}
    if len(set(found.values())) > 1:
        gpus = ", ".join(f"{name} {uuid}" for name, uuid in found.items())
        raise EnvironmentUnmet(
            f"--python: the environments see different GPUs ({gpus});"
            " choose one with CUDA_VISIBLE_DEVICES"
        )


def first_of(workers: Workers) -> WorkerProcess:
    """The worker of the first environment, whose fingerprint is the run's."""
    return next(iter(workers.values()))


def measured_on(environment: Mapping[str, Any]) -> dict[str, str | None]:
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
    device = worker.ready["environment"]["device_uuid"] or worker.ready["device"]
    if device == held_device:
        return nullcontext()
    return device_lock(device, wait=wait, check=signals.check)


def environments_of(workers: Workers) -> Environments:
    return {name: worker.ready["environment"] for name, worker in workers.items()}


def recorded_environments(meta: Mapping[str, Any]) -> Environments:
    """Those of run.json."""
    named = {one["name"]: one["environment"] for one in meta.get("environments", ())}
    return named or {None: meta["environment"]}


def changes(meta: Mapping[str, Any], now: Environments) -> list[Change]:
    """The facts that are not as they were when the run began.

    A run that was measured on several devices may go on on another one of their kind.
    """
    then = recorded_environments(meta)
    if meta.get("devices") and not meta.get("merged"):
        return unlike(then, now)
    merged_from = {one.get("device_uuid") for one in meta.get("devices") or ()}
    found = _changes(then, now, COMPARED_FACTS)
    return [one for one in found if one.fact != "device_uuid" or one.now not in merged_from]


def unlike(then: Environments, now: Environments) -> list[Change]:
    """The facts that differ between two devices, but for which of equal devices they are."""
    facts = [fact for fact in COMPARED_FACTS if fact != "device_uuid"]
    return _changes(then, now, facts, CHOICE)


def _changes(
    then_by_name: Environments, now: Environments, compared: Sequence[str], ignored: str = ""
) -> list[Change]:
    found = []
    for name, then in then_by_name.items():
        facts = compared if name is None else (*compared, *COMPARED_IF_NAMED)
        found += [Change(name, *one) for one in different(facts, then, now[name], ignored)]
    return found


def different(
    facts: Iterable[str], then: Mapping[str, Any], now: Mapping[str, Any], ignored: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """The facts that are not equal, with both values; of settings, all but `ignored` count."""

    def value(environment: Mapping[str, Any], fact: str) -> Any:
        found = environment.get(fact)
        if not isinstance(found, Mapping):
            return found
        return {name: one for name, one in found.items() if name != ignored}

    for fact in facts:
        if value(then, fact) != value(now, fact):
            yield fact, value(then, fact), value(now, fact)


def refuse_changes(found: Sequence[Change]) -> None:
    """Raises EnvironmentUnmet for the first change."""
    for one in found:
        where = "this environment" if one.python is None else f"{one.python} now"
        raise EnvironmentUnmet(
            f"the run was measured with {one.name} {one.then!r}, {where} has {one.now!r};"
            " rows of both would not be comparable: start a new run, or add --force"
        )
