"""A command goes on when nobody can read it any more, and its exit code says so."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.conftest import command_line, environment, ran
from tests.made_runs import read_rows

SMALL = shlex.split("--batch 1 --seq-len 64 --d-model 32 --heads 2 --device cpu --plan quick")
MEMORY = ("--set", "measure=[memory]")
DONE, LOST = 0, 7


def in_shell(
    folder: Path, redirection: str, *args: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    line = f"exec {shlex.join(command_line(*args))} {redirection}"
    return ran(["sh", "-c", line], cwd=folder, env=environment(env))


@pytest.mark.long
@pytest.mark.parametrize(
    ("redirection", "exit_code", "said"),
    [
        (">&-", LOST, "error: stdout: Bad file descriptor; what was printed there is lost\n"),
        (
            ">/dev/full",
            LOST,
            "error: stdout: No space left on device; what was printed there is lost\n",
        ),
        ("2>&-", DONE, ""),
        ("2>/dev/full", DONE, ""),
        ("<&-", DONE, ""),
        (">&- 2>&- <&-", LOST, ""),
        (">/dev/full 2>/dev/full", LOST, ""),
    ],
)
def test_output_that_is_lost_is_said_once(
    tmp_path: Path, redirection: str, exit_code: int, said: str
) -> None:
    done = in_shell(tmp_path, redirection, "list", "scenarios")
    assert (done.returncode, done.stderr) == (exit_code, said)
    assert ("quickstart" in done.stdout) == (exit_code == DONE)


@pytest.mark.long
def test_a_refusal_keeps_its_exit_code(tmp_path: Path) -> None:
    for redirection in ("2>&-", "2>/dev/full", ">&- 2>&-"):
        assert in_shell(tmp_path, redirection, "run", "no_such_scenario").returncode == 2


def test_a_reader_that_has_read_enough_is_no_news(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command_line("help", "all"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == LOST
    process.stderr.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("redirection", "exit_code"),
    [("--json | head -1", DONE), (">/dev/full 2>&1", LOST)],
)
def test_a_run_goes_on_and_keeps_its_rows(tmp_path: Path, redirection: str, exit_code: int) -> None:
    done = in_shell(tmp_path, redirection, "run", "--backends", "naive,sdpa", *SMALL, *MEMORY)
    assert done.returncode == exit_code, done.stderr
    assert "Traceback" not in done.stderr
    (run,) = tmp_path.glob("results/2*")
    assert [row["status"] for row in read_rows(run)] == ["ok"] * 2
