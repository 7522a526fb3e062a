"""What a child prints is appended to its log, each byte once, up to a limit."""

import os
from pathlib import Path

import pytest

from attnbench.harness.process import worker_log
from attnbench.harness.process.worker_log import LOG_CAP_BYTES, TAIL_BYTES, WorkerLog


def test_200_mb_of_output_write_one_mib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write_all = worker_log.write_all

    def counted(fd: int, data: bytes) -> None:
        written.append(len(data))
        write_all(fd, data)

    monkeypatch.setattr(worker_log, "write_all", counted)
    log, path = WorkerLog(), tmp_path / "worker-1.log"
    log.add(b"first\n")
    log.open(path)
    for _ in range(200 * 16):
        log.add(b"x" * (1 << 16))
    log.add(b"last")
    log.close()
    assert sum(written) == path.stat().st_size == LOG_CAP_BYTES
    assert path.read_bytes().startswith(b"first\nxxx")
    assert len(log.tail) == TAIL_BYTES
    assert log.tail.endswith(b"xlast")


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
    log = WorkerLog()
    log.open(path)
    log.add(b"evil\n")
    log.close()
    assert victim.read_text() == "content"
    assert log.tail == b"evil\n"
    assert log.failure.startswith("worker-1.log: ")
