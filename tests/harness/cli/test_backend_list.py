"""The list of backends is kept until something that it depends on changes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import environment

MINE = "def why_not(problem, device):\n    return {why!r}\n\n\ndef prepare(p, i, w): ...\n"
CODE = (
    "import sys; from attnbench.harness.cli.app import app; app(standalone_mode=False);"
    " print('torch' in sys.modules)"
)


@pytest.fixture
def listed(tmp_path):
    """Runs `attnbench list backends`; gives the lines, and whether torch was imported."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.py").write_text(MINE.format(why="for no problem"))

    def run(*words: str, **settings: str) -> tuple[list[str], bool]:
        ours = {
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "ATTNBENCH_BACKENDS": str(tmp_path / "mine"),
            **settings,
        }
        done = subprocess.run(
            [sys.executable, "-c", CODE, "list", "backends", "--device", "cpu", *words],
            env=environment(ours),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        *lines, torch = done.stdout.splitlines()
        return lines, torch == "True"

    return run


def of_mine(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("mine"))


def test_it_is_asked_once_and_then_read_without_torch(listed):
    first, asked = listed()
    again, asked_again = listed()
    assert (asked, asked_again) == (True, False)
    assert first == again
    assert "for no problem" in of_mine(again)
    assert listed("--refresh")[1]


def test_a_changed_backend_is_asked_again(listed, tmp_path):
    listed()
    path = tmp_path / "mine" / "mine.py"
    path.write_text(MINE.format(why="only on Sundays"))
    os.utime(path, ns=(1, 1))
    lines, asked = listed()
    assert asked
    assert "only on Sundays" in of_mine(lines)


def test_another_folder_of_backends_is_another_list(listed):
    listed()
    lines, asked = listed(ATTNBENCH_BACKENDS="")
    assert asked
    assert not any(line.startswith("mine") for line in lines)


@pytest.mark.parametrize("content", ["", "[]", '{"digest": 1}', "\x00"])
def test_a_broken_file_is_replaced(listed, tmp_path, content):
    listed()
    (kept,) = (tmp_path / "cache" / "attnbench").iterdir()
    whole = json.loads(kept.read_text())
    kept.write_text(content)
    assert listed()[1]
    assert json.loads(kept.read_text()) == whole


def test_a_home_that_cannot_be_written_is_no_error(listed, tmp_path):
    (tmp_path / "file").write_text("")
    assert of_mine(listed(XDG_CACHE_HOME=str(Path(tmp_path / "file")))[0])
