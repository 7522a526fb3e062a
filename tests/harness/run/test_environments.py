"""The first worker of a run: refused in one line, gone at the end, and what it tells compared."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench.harness.process.signals import Signals
from attnbench.harness.process.worker_process import WorkerFailure
from attnbench.harness.rows.record import Status
from attnbench.harness.run import worker_pool
from attnbench.harness.run.engine import (
    Change,
    changes,
    unlike,
)
from attnbench.harness.run.worker_pool import open_workers, start_worker

BROKEN = WorkerFailure(Status.CRASHED, "exit code 1", "Traceback\nImportError: no libcudnn\n")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("torch was built without CUDA", "no cuda device: torch was built without CUDA; run with"),
        (BROKEN, "no worker could be started: exit code 1"),
    ],
)
def test_a_machine_that_lacks_what_is_wanted_is_refused_and_nothing_stays(
    monkeypatch: pytest.MonkeyPatch, found: Any, said: str
) -> None:
    worker = Mock(ready=SimpleNamespace(device="cuda", why=found))
    made = Mock(side_effect=found) if isinstance(found, Exception) else Mock(return_value=worker)
    monkeypatch.setattr(worker_pool, "start_worker", made)
    with (
        pytest.raises(EnvironmentUnmet) as refusal,
        Signals() as signals,
        open_workers("cuda", signals),
    ):
        raise AssertionError("it was used")
    assert str(refusal.value).startswith(said)
    assert worker.kill.called == (found is not BROKEN)


def test_a_fact_that_changed_is_named_and_the_version_of_python_may_change() -> None:
    then = {"torch": "2.11", "python": "3.11", "allocator": {"CUDA_VISIBLE_DEVICES": "0"}}
    now = {"torch": "2.11", "python": "3.13", "allocator": {"CUDA_VISIBLE_DEVICES": "1"}}
    assert changes(then, now) == []
    assert changes(then, {**now, "torch": "2.12"}) == [Change("torch", "2.11", "2.12")]
    moved = {**now, "device_uuid": "GPU-1"}
    assert changes(then, moved) == [Change("device_uuid", None, "GPU-1")]
    assert unlike(then, moved) == []


KILLED = WorkerFailure(Status.CRASHED, "SIGKILL")
NO_TORCH = WorkerFailure(Status.ERROR, "no torch")


@pytest.mark.parametrize(
    ("failures", "exit_code", "starts"),
    [
        ([], None, 1),
        ([KILLED], -9, 2),
        ([KILLED, KILLED], -9, 2),
        ([WorkerFailure(Status.TIMEOUT, "hangs")], -9, 1),  # it failed by itself
        ([WorkerFailure(Status.CRASHED, "exit code 1")], 1, 1),
        ([NO_TORCH], None, 1),
    ],
)
def test_a_first_worker_that_is_killed_while_it_starts_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch,
    failures: list[WorkerFailure],
    exit_code: int | None,
    starts: int,
) -> None:
    worker = SimpleNamespace(exit_code=exit_code, wait_ready=Mock(side_effect=[*failures, None]))
    made = Mock(return_value=worker)
    monkeypatch.setattr(worker_pool, "WorkerProcess", made)
    if len(failures) < starts:
        assert start_worker("cpu") is worker
    else:
        with pytest.raises(WorkerFailure, match=failures[-1].reason):
            start_worker("cpu")
    assert made.call_count == starts
