"""Logs of a resumed run are kept, and what is missing in a log is known."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from attnbench.harness.run.worker_pool import RunConfig, Slot, WorkerPool


def test_numbers_of_logs_go_on_after_the_highest(tmp_path: Path) -> None:
    for name in ("worker-3.log", "worker-old-7.log", "worker-x.log", "worker-.log", "notes.txt"):
        (tmp_path / name).write_text("")
    nothing: Any = None  # no worker is started
    assert WorkerPool(cast(RunConfig, nothing), tmp_path, None).started == 7


class FakeWorker:
    """Its log could not be written."""

    log_failure = "worker-1.log: No space left on device"

    def kill(self) -> None:
        pass

    def close(self) -> None:
        pass

    def log_tail(self) -> None:
        pass


@pytest.mark.parametrize("end", [WorkerPool.close, lambda pool: pool.dismiss(0), lambda pool: None])
def test_what_a_log_lacks_is_known_while_its_worker_lives_and_afterwards(
    tmp_path: Path, end: Callable[[WorkerPool], Any]
) -> None:
    nothing: Any = None
    pool = WorkerPool(cast(RunConfig, nothing), tmp_path, None)
    assert pool.log_failure is None
    pool._workers[Slot(0, None)] = cast(Any, FakeWorker())
    end(pool)
    assert pool.log_failure == FakeWorker.log_failure
