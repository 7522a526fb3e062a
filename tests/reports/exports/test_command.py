"""`attnbench show --format`: where it writes, its messages, its refusals."""

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import command_line, environment
from tests.made_runs import quickstart


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return quickstart(tmp_path / "results")


def test_stdout_has_the_data_only_and_stderr_what_is_left_out(here, run: Path) -> None:
    done = here("show", run, "--format", "github-benchmark")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[\n")
    assert done.stderr.startswith("note: ")
    assert "cases without a latency left out" in done.stderr
    again = here("show", run, "--format", "github-benchmark", "--output", "-")
    assert again.stdout == done.stdout


def test_a_file_that_cannot_be_written_is_one_line_and_leaves_the_old_one(
    here, run: Path, tmp_path: Path
) -> None:
    done = here("show", run, "-o", tmp_path / "absent" / "table.csv")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "choose another place with --output FILE" in done.stderr
    done = here("show", run, "--format", "csv", "-o", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_an_unknown_format_and_runs_that_do_not_fit_are_one_line(
    here, run: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(run, tmp_path / "other")
    for arguments in (("--format", "xlsx"), (other, "--format", "github-benchmark")):
        done = here("show", run, *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.long
def test_bytes_do_not_go_to_a_terminal(run: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'attnbench[parquet]'")
    ours, theirs = pty.openpty()
    command = command_line("show", run, "--format", "parquet")
    done = subprocess.run(
        command, env=environment(), stdout=theirs, stderr=subprocess.PIPE, check=False
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert b"--output FILE" in done.stderr
    piped = subprocess.run(command, env=environment(), capture_output=True, check=True)
    assert piped.stdout.startswith(b"PAR1")
