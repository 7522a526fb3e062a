"""A command ends with whoever runs it, and so does everything that it has started."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from attnbench.harness.process.command import run_command
from tests.conftest import environment, ran, wait_for

PATIENCE_S = 30.0
ESCAPES = "echo $$; setsid sleep 600 & echo $!; sleep 600"
PARENT = f"""
from attnbench.harness.process.command import run_command
run_command(["sh", "-c", "({ESCAPES}) > pids"])
"""


def test_it_gives_what_was_printed_and_how_it_ended() -> None:
    done = run_command(["sh", "-c", "cat; echo no >&2; exit 3"], text="yes")
    assert (done.stdout, done.stderr, done.returncode) == ("yes", "no\n", 3)
    assert run_command(["sh", "-c", "kill -TERM $$"]).returncode == -signal.SIGTERM
    changed = run_command(["sh", "-c", "echo $A$ATTNBENCH_RUN"], env={"A": "B"})
    assert changed.stdout == "B\n"


@pytest.mark.parametrize(("content", "wanted"), [(None, FileNotFoundError), ("", PermissionError)])
def test_what_does_not_run_is_an_error(
    tmp_path: Path, content: str | None, wanted: type[OSError]
) -> None:
    if content is not None:
        (tmp_path / "it").write_text(content)
    before = psutil.Process().num_fds()
    with pytest.raises(wanted):
        run_command([str(tmp_path / "it")])
    assert psutil.Process().num_fds() == before


@pytest.mark.long
def test_after_its_time_it_is_ended_with_what_it_started(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(["sh", "-c", f"({ESCAPES}) > {tmp_path}/pids"], timeout_s=1.0)
    started = (tmp_path / "pids").read_text().split()
    assert len(started) == 2
    assert not any(psutil.pid_exists(int(pid)) for pid in started)


@pytest.mark.long
def test_nothing_is_left_after_its_parent_was_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=tmp_path, env=environment()
    ) as parent:
        wait_for(lambda: pids.exists() and pids.read_text().count("\n") == 2)
        left = [psutil.Process(int(pid)) for pid in pids.read_text().split()]
        left += psutil.Process(parent.pid).children(recursive=True)
        parent.kill()
    assert len(left) > 3
    assert not psutil.wait_procs(left, PATIENCE_S)[1]


@pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="needs the autogroup of Linux"
)
def test_what_a_nice_caller_starts_is_as_nice_to_other_sessions() -> None:
    program = (
        "from attnbench.harness.process.command import run_command;"
        "print(run_command(['cat', '/proc/self/autogroup']).stdout)"
    )
    words = ["nice", "-n", "5", sys.executable, "-c", program]
    done = ran(words, env=environment({}), check=True)
    assert done.stdout.strip().endswith("nice 5")
