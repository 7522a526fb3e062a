"""What a day with a GPU asks of its machine: commands that end."""

import sys
import time
from pathlib import Path

import pytest

from tests.gpu_day.commands import execute

pytestmark = pytest.mark.long

SLOW = "echo begin; exec sleep 60"  # a shell has begun at once, also on a busy machine
DEAF = f"trap '' INT; {SLOW}"


@pytest.mark.parametrize("program", [SLOW, DEAF])
def test_a_command_that_is_too_slow_is_ended(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.gpu_day.commands.GRACE_S", 1.0)
    ended = execute(["/bin/sh", "-c", program], tmp_path / "logs" / "a.log", 2.0, {})
    assert ended.cut_off
    assert ended.code in (130, 137)
    assert (tmp_path / "logs" / "a.log").read_text().startswith("begin")


def test_what_a_command_leaves_behind_is_ended(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys\n"
        "left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(left.pid); sys.exit(7)\n"
    )
    ended = execute([sys.executable, "-c", program], tmp_path / "a.log", 60.0, {})
    assert (ended.code, ended.cut_off) == (7, False)
    left = Path("/proc") / (tmp_path / "a.log").read_text().strip()
    for _ in range(1200):
        if not left.exists() or "Z" in (left / "stat").read_text().split()[2]:
            break
        time.sleep(0.05)
    else:
        pytest.fail("a process is left")
