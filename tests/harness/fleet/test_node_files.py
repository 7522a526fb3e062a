"""What devices elsewhere print is kept, and ends."""

from pathlib import Path

from attnbench.harness.fleet.node_files import NodeFiles


def test_a_log_ends_at_a_mebibyte_however_often_more_of_it_comes(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    kept = NodeFiles(tmp_path)
    for _ in range(5):
        assert kept.add(0, "worker-1.log", b"x" * 300_000) == ""
    assert (tmp_path / "logs" / "device-1-worker-1.log").stat().st_size == 1 << 20
