"""The first workers of a run's environments: all on one device, all gone at the end."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench.harness.process.device_lock import device_lock
from attnbench.harness.process.interpreter import Interpreter
from attnbench.harness.process.signals import Signals
from attnbench.harness.process.worker_process import WorkerFailure
from attnbench.harness.rows.record import Status
from attnbench.harness.run import environments
from attnbench.harness.run.environments import (
    changes,
    environments_of,
    first_workers,
    lock_device,
)

OLD, NEW = (
    Interpreter(name=name, path=Path(f"/venvs/{name}/bin/python")) for name in ("old", "new")
)


class Worker:
    """A stand-in: the device and GPU that `behaviour` gives its interpreter, or its error."""

    behaviour: dict[str, Any] = {}  # noqa: RUF012 - set by each test
    made: list["Worker"] = []  # noqa: RUF012 - likewise

    def __init__(
        self, wanted: str, python: Path | None, wake_fd: int, *, allow_import: bool
    ) -> None:
        behaviour = self.behaviour[python.parent.parent.name if python else "ours"]
        if isinstance(behaviour, Exception):
            raise behaviour
        self.wanted, self.killed = wanted, False
        why = "torch was built without CUDA" if wanted == "cuda" and behaviour is None else ""
        device = "cpu" if behaviour is None else "cuda"
        environment = {"device_uuid": behaviour, "torch": python.parts[2] if python else "ours"}
        self.ready = {"device": device, "why": why, "environment": environment}
        self.made.append(self)

    def kill(self) -> None:
        self.killed = True


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(environments, "start_worker", Worker)
    monkeypatch.setattr(environments, "check_interpreters", lambda interpreters: None)
    monkeypatch.setattr(Worker, "made", [])

    def start(
        interpreters: tuple[Interpreter, ...] = (OLD, NEW), wanted: str = "auto", **behaviour: Any
    ) -> dict[str | None, Any]:
        monkeypatch.setattr(Worker, "behaviour", behaviour)
        with Signals() as signals, first_workers(wanted, signals, interpreters) as found:
            assert not any(worker.killed for worker in found.values())
            return dict(found)

    return start


def test_in_a_run_of_one_environment_its_python_may_change(workers: Any) -> None:
    (worker,) = workers((), ours=None).values()
    worker.ready["environment"]["python"] = "3.13"
    meta = {"environment": {"torch": "ours", "python": "3.11"}}
    assert changes(meta, environments_of({None: worker})) == []
    older = {"environment": {"torch": "2.11"}}
    assert changes(older, environments_of({None: worker}))[0].name == "torch"


def test_a_device_that_the_caller_holds_is_not_locked_again_and_any_other_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNBENCH_LOCKS", str(tmp_path))
    on_cpu: Any = SimpleNamespace(ready={"device": "cpu", "environment": {"device_uuid": None}})
    on_gpu: Any = SimpleNamespace(ready={"device": "cuda", "environment": {"device_uuid": "GPU-1"}})
    with (
        Signals() as signals,
        device_lock("cpu", wait=False, check=lambda: None),
        device_lock("GPU-1", wait=False, check=lambda: None),
    ):
        for worker, held in ((on_cpu, "cpu"), (on_gpu, "GPU-1")):
            with lock_device(worker, signals, wait=False, held_device=held):
                pass
        for worker, held in ((on_cpu, None), (on_cpu, "GPU-1"), (on_gpu, "cuda")):
            with (
                pytest.raises(EnvironmentUnmet, match="is measuring on this"),
                lock_device(worker, signals, wait=False, held_device=held),
            ):
                pass


@pytest.mark.parametrize(("kills", "starts"), [(0, 1), (1, 2), (2, 2)])
def test_a_first_worker_that_is_killed_while_it_starts_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch, kills: int, starts: int
) -> None:
    made = []

    class Killed:
        exit_code = -9

        def __init__(self, *_: object, **__: object) -> None:
            made.append(self)

        def wait_ready(self) -> None:
            if len(made) <= kills:
                raise WorkerFailure(Status.CRASHED, "SIGKILL")

    monkeypatch.setattr(environments, "WorkerProcess", Killed)
    if kills == 2:
        with pytest.raises(WorkerFailure, match="SIGKILL"):
            environments.start_worker("cpu")
    else:
        assert environments.start_worker("cpu") is made[-1]
    assert len(made) == starts


@pytest.mark.parametrize(
    ("status", "exit_code"), [(Status.TIMEOUT, -9), (Status.CRASHED, 1), (Status.ERROR, None)]
)
def test_a_first_worker_that_fails_by_itself_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, status: Status, exit_code: int | None
) -> None:
    failure = WorkerFailure(status, "no torch")
    made = []

    def start(*_: object, **__: object) -> Any:
        made.append(1)
        return SimpleNamespace(exit_code=exit_code, wait_ready=Mock(side_effect=failure))

    monkeypatch.setattr(environments, "WorkerProcess", start)
    with pytest.raises(WorkerFailure, match="no torch"):
        environments.start_worker("cpu")
    assert made == [1]
