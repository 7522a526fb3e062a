"""Logs of a resumed run are kept, and what is missing in a log is known."""

from pathlib import Path

from attnbench.harness.run.worker_pool import WorkerPool
from tests.fakes.specs import run_spec


def test_numbers_of_logs_go_on_after_the_highest(tmp_path: Path) -> None:
    for name in ("worker-3.log", "worker-old-7.log", "worker-x.log", "worker-.log", "notes.txt"):
        (tmp_path / name).write_text("")
    assert WorkerPool(run_spec(), tmp_path, None).started == 7
