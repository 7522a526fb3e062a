"""Which workers a run has at a time, and where what they print goes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnbench.harness.process.worker_process import WorkerFailure
from attnbench.harness.rows.record import Status
from attnbench.harness.run import worker_pool
from attnbench.harness.run.worker_pool import FIRST, Seat, WorkerPool
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
