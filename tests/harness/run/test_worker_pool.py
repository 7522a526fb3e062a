"""Which workers a run has at a time, and where what they print goes. The first one is refused in
one line, gone at the end, and what it tells is compared.
"""

from pathlib import Path
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
from attnbench.harness.run.worker_pool import FIRST, Seat, WorkerPool, open_workers, start_worker
from tests.fakes.specs import run_spec


class FakeWorker(SimpleNamespace):
    """Answers nothing; `killed` counts how often it was."""

    pid, killed = 0, 0
    log = SimpleNamespace(open=lambda *_: None, tail=lambda: None)

    def ask(self, op: str, timeout_s: float, **fields: Any) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def kill(self, term_s: float = 0.0) -> None:
        self.killed += 1


def pool_of(device: str, logs: Path) -> WorkerPool:
    """Its first worker has died."""
    pool = WorkerPool(device, None)
    pool.first = FakeWorker(exit_code=1)  # type: ignore[assignment]
    pool.configure(run_spec(device), logs)
    return pool


def test_a_worker_that_finds_no_gpu_any_more_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    worker = FakeWorker(ready=SimpleNamespace(why="no device"))
    monkeypatch.setattr(worker_pool, "start_worker", lambda *_, **__: worker)
    pool = pool_of("cuda", tmp_path)
    with pytest.raises(WorkerFailure, match="the cuda device is gone: no device") as failure:
        pool.worker(FIRST)
    assert failure.value.status is Status.UNAVAILABLE
    assert worker.killed == 1


@pytest.mark.parametrize(("device", "alive"), [("cuda", 1), ("cpu", 3)])
def test_on_a_gpu_one_process_at_a_time_has_a_context(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, device: str, alive: int
) -> None:
    started: list[FakeWorker] = []

    def start(*_: Any, **__: Any) -> Any:
        started.append(FakeWorker(ready=SimpleNamespace(why="")))
        return started[-1]

    monkeypatch.setattr(worker_pool, "start_worker", start)
    pool = pool_of(device, tmp_path)
    for seat in (FIRST, Seat(0, "mine"), Seat(1)):
        pool.worker(seat)
        with pool.for_check(Seat(1)):
            pass
    assert sum(not worker.killed for worker in started) == alive


def test_numbers_of_logs_go_on_after_the_highest(tmp_path: Path) -> None:
    for name in ("worker-3.log", "worker-old-7.log", "worker-x.log", "worker-.log", "notes.txt"):
        (tmp_path / name).write_text("")
    assert pool_of("cpu", tmp_path).started == 7


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
