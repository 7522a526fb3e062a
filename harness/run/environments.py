"""The first worker of a run, or of each of its environments: it also tells what the machine and its
software are.
"""

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import BadInput, EnvironmentUnmet, Stopped
from ..process.device_lock import alone_on
from ..process.interpreter import Interpreter, install_command, interview, last_words
from ..process.signals import Signals
from ..process.worker_process import Fault, Interrupted, Worker

FINGERPRINT = (
    "device_name",
    "device_uuid",
    "driver",
    "cuda",
    "cudnn",
    "torch",
    "threads",
    "cpu",
    "cores",
    "allocator",
    "attnbench",
    "git",
)
"""Facts of the environment that must be equal before rows of two starts may stand in one run."""
ALSO_NAMED = ("python", "triton")
"""Further ones of an environment that was named: its versions are what a run of several compares.
"""

Workers = Mapping[str | None, Worker]
"""By the environment's name; None in a run of one."""


class Change(NamedTuple):
    """A fact that a run was measured with, and what it is now."""

    python: str | None
    fact: str
    then: Any
    now: Any

    @property
    def of(self) -> str:
        return self.fact if self.python is None else f"{self.fact} of {self.python}"


@contextmanager
def first_workers(
    wanted: str, signals: Signals, interpreters: Sequence[Interpreter] = ()
) -> Iterator[Workers]:
    """Started one after the other, gone at the end. Raises Refusal where the machine or an
    interpreter lacks what is wanted.
    """
    workers: dict[str | None, Worker] = {}
    try:
        interview(interpreters)
        for one in interpreters or (None,):
            workers[one.name if one else None] = worker = _started(wanted, signals, one)
            wanted = worker.ready[
                "device"
            ]  # "auto" is decided once: a comparison across devices would be none
        _refuse_different_gpus(workers)
        yield workers
    except Interrupted:
        raise Stopped(signals.received or signal.SIGINT) from None
    except Fault as fault:
        raise EnvironmentUnmet(
            f"no worker could be started: {fault.reason}\n{fault.log_tail or ''}".rstrip()
        ) from None
    finally:
        for worker in workers.values():
            worker.kill()


def _started(wanted: str, signals: Signals, interpreter: Interpreter | None) -> Worker:
    try:
        worker = Worker(wanted, signals.wake_fd, interpreter.path if interpreter else None)
    except Fault as fault:
        if interpreter is None:
            raise
        said = last_words((fault.log_tail or fault.reason).strip().splitlines())
        needs = install_command(interpreter.path)
        raise EnvironmentUnmet(
            f"{interpreter.said}: no worker could be started: {said}; what it needs: {needs}"
        ) from None
    if worker.ready["why"]:
        worker.kill()
        found = f"no {wanted} device: {worker.ready['why']}"
        if interpreter is not None:
            raise EnvironmentUnmet(
                f"{interpreter.said}: {found}; wanted one device that all environments measure on"
            )
        raise EnvironmentUnmet(f"{found}; run with --device cpu, or see attnbench doctor")
    return worker


def _refuse_different_gpus(workers: Workers) -> None:
    found = {name: worker.ready["environment"]["device_uuid"] for name, worker in workers.items()}
    if len(set(found.values())) > 1:
        said = ", ".join(f"{name} {uuid}" for name, uuid in found.items())
        raise EnvironmentUnmet(
            f"--python: the environments see different GPUs ({said}); choose one with"
            " CUDA_VISIBLE_DEVICES"
        )


def first_of(workers: Workers) -> Worker:
    """The worker that speaks for the run: of the first environment."""
    return next(iter(workers.values()))


def device_for(worker: Worker, signals: Signals, *, wait: bool) -> AbstractContextManager[None]:
    """Exclusive use of the device, as far as our own runs go."""
    device = worker.ready["environment"]["device_uuid"] or worker.ready["device"]
    return alone_on(device, wait=wait, check=signals.check)


def interpreters_of(meta: Mapping[str, Any]) -> tuple[Interpreter, ...]:
    """Those of a run that is taken up again. Raises BadInput where run.json is not as it should be,
    EnvironmentUnmet where one is gone.
    """
    try:
        found = tuple(
            Interpreter(name=one["name"], path=Path(one["path"]))
            for one in meta.get("environments", ())
        )
    except (KeyError, TypeError):
        raise BadInput(
            "run.json: environments: not names with paths; the run cannot be taken up again"
        ) from None
    for one in found:
        if not one.path.exists():
            raise EnvironmentUnmet(
                f"the run was measured with {one.said}, which is gone; put it back, or start a"
                " new run"
            )
    return found


def changes(meta: Mapping[str, Any], workers: Workers) -> list[Change]:
    """Facts that are not as they were when the run began."""
    known = {one["name"]: one["environment"] for one in meta.get("environments", ())} or {
        None: meta["environment"]
    }
    found = []
    for name, then in known.items():
        now = workers[name].ready["environment"]
        facts = FINGERPRINT if name is None else (*FINGERPRINT, *ALSO_NAMED)
        found += [
            Change(name, fact, then.get(fact), now.get(fact))
            for fact in facts
            if then.get(fact) != now.get(fact)
        ]
    return found


def refuse_changes(found: Sequence[Change]) -> None:
    """Raises EnvironmentUnmet for the first of them."""
    for one in found:
        where = "this environment" if one.python is None else f"{one.python} now"
        raise EnvironmentUnmet(
            f"the run was measured with {one.of} {one.then!r}, {where} has {one.now!r}; "
            "rows of both would not be comparable: start a new run, or add --force"
        )
