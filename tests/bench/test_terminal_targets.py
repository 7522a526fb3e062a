"""What a terminal shows, and how soon, against the targets. `make bench` runs these."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from statistics import median

import pytest
from rich.cells import cell_len

from tests.conftest import ROOT, command_line, environment
from tests.made_runs import quickstart

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# of our own, beside importing torch: together 2 s where that takes 1.1 s, as on a machine with
# nothing else to do; on a busy one it takes twice as long and says nothing about us
MOST_BESIDE_TORCH_S = 0.9
ROUNDS = 5
COMMANDS = (
    "list backends",
    "list scenarios",
    "list studies",
    "list probes",
    "list runs",
    "run quickstart --dry-run",
    "run memory_wall --dry-run",
    "doctor",
    "show latest",
    "show latest --all",
    "claims --run latest",
    "compare latest --baseline fused",
)


def on_a_terminal(folder: Path, columns: int, *arguments: str) -> list[str]:
    """What the command writes to a terminal of that width: its lines without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        command_line(*arguments),
        cwd=folder,
        env=environment({"TERM": "xterm-256color", "COLUMNS": str(columns)}),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    data = b""
    while process.poll() is None or select.select([ours], [], [], 0.1)[0]:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                data += os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
    process.wait()
    os.close(ours)
    text = ESCAPES.sub("", data.decode(errors="replace"))
    return [line.rstrip() for line in re.split(r"[\r\n]+", text)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stored run as results/latest."""
    found = tmp_path_factory.mktemp("terminal")
    path = quickstart(found / "results")
    (found / "results" / "latest").symlink_to(path.name)
    return found


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_line_of_every_table_fits_the_terminal(folder, command, columns):
    lines = on_a_terminal(folder, columns, *command.split())
    assert len(lines) > 2
    wide = [line for line in lines if cell_len(line) > columns]
    assert not wide, wide[:3]


def test_a_dry_run_of_36_cases_takes_2_s(benchmark):
    def seconds(command):
        begin = time.perf_counter()
        done = subprocess.run(
            command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
        )
        return time.perf_counter() - begin, done.stdout

    torch_alone = [sys.executable, "-c", "import torch"]
    dry_run = command_line("run", "quickstart", "--dry-run", "--device", "cpu")
    assert "36 cases" in seconds(dry_run)[1]
    beside = []
    for _ in range(ROUNDS):  # side by side: both share what else the machine does
        beside.append(seconds(dry_run)[0] - seconds(torch_alone)[0])
    benchmark.pedantic(seconds, args=(dry_run,), rounds=ROUNDS)
    assert median(beside) <= MOST_BESIDE_TORCH_S
