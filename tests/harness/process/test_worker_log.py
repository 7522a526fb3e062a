"""What a child prints is appended to its log, each byte once, up to a limit."""

import os
from pathlib import Path

import pytest

from attnbench.harness.files.safe_files import write_all
from attnbench.harness.process.worker_log import LOG_CAP_BYTES, TAIL_BYTES, WorkerLog


def test_200_mb_of_output_write_one_mib(tmp_path: Path) -> None:
    theirs, ours = os.pipe()
    log, path = WorkerLog(theirs), tmp_path / "worker-1.log"
    os.write(ours, b"first\n")
    log.open(path, [])
    for _ in range(200):
        write_all(ours, b"x" * (1 << 20))
    os.write(ours, b"last")
    os.close(ours)
    log.close()
    assert path.stat().st_size == LOG_CAP_BYTES
    assert path.read_bytes().startswith(b"first\nxxx")
    tail = log.tail() or ""
    assert len(tail) == TAIL_BYTES
    assert tail.endswith("xlast")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "nowhere"])
def test_a_log_that_leads_elsewhere_is_left_out(tmp_path: Path, kind: str) -> None:
    path, victim = tmp_path / "worker-1.log", tmp_path / "victim"
    victim.write_text("content")
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = tmp_path / "gone" / "worker-1.log"
    theirs, ours = os.pipe()
    log, failures = WorkerLog(theirs), list[str]()
    log.open(path, failures)
    os.write(ours, b"evil\n")
    os.close(ours)
    log.close()
    assert victim.read_text() == "content"
    assert log.tail() == "evil\n"
    assert [one.partition(": ")[0] for one in failures] == ["worker-1.log"]
