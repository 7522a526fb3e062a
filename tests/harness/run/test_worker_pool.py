"""Logs of a resumed run are kept, and what is missing in a log is known."""

from pathlib import Path
from typing import Any, cast

from attnbench.harness.run.worker_pool import RunConfig, WorkerPool


def test_numbers_of_logs_go_on_after_the_highest(tmp_path: Path) -> None:
    for name in ("worker-3.log", "worker-old-7.log", "worker-x.log", "worker-.log", "notes.txt"):
        (tmp_path / name).write_text("")
    nothing: Any = None  # no worker is started
    assert WorkerPool(cast(RunConfig, nothing), tmp_path, None).started == 7
