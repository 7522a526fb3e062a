"""What stands in place of a file that a command reads: an answer or one line, soon, and nothing of
what a link leads to.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import fake_run

SECRET = "secret-9c1f"
MANY = 99_000
TERABYTE = 1 << 40

pytestmark = pytest.mark.long  # eighty of them

ODD: dict[str, Callable[[Path], Any]] = {
    "a terabyte of zeros": lambda path: (path.touch(), os.truncate(path, TERABYTE)),
    "zeros without an end": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link out": lambda path: path.symlink_to(path.parents[1] / "private"),
    "no text": lambda path: path.write_bytes(b'{"schema": 1, "a": "\xff"}\n'),
    "100 000 lists": lambda path: path.write_text("[" * 100_000 + "]" * 100_000),
    "100 000 objects": lambda path: path.write_text('{"a": ' * 100_000 + "1" + "}" * 100_000),
    "a key twice": lambda path: path.write_text(
        "{" + ", ".join(f'"k{n}": {n}' for n in range(MANY)) + ', "k5": 1}'
    ),
    "a key twice in YAML": lambda path: path.write_text(
        "".join(f"k{n}: {n}\n" for n in range(MANY)) + "k5: 1\n"
    ),
    "a number of 100 000 digits": lambda path: path.write_text('{"schema": ' + "9" * 100_000 + "}"),
    "nothing": Path.touch,
    "80 million empty lines": lambda path: path.write_bytes(b"\n" * 80_000_000),
}
COMMANDS = {
    "results/baselines/main.json": ("compare main {run}", "list baselines"),
    "results/calibration.jsonl": ("show {run}",),
    "results/selfcheck.jsonl": ("compare {run} {run}",),
    "results/mine.yaml": ("run results/mine.yaml --dry-run",),
    "results/gate.yaml": ("compare {run} {run} --gate results/gate.yaml",),
    "results/config.json": ("advise results --device cpu",),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("place", COMMANDS)
def test_what_is_no_such_file_is_an_answer_or_one_line(
    here: Any, tmp_path: Path, place: str, odd: str
) -> None:
    run = fake_run(tmp_path / "results", 1)
    (tmp_path / "private").write_text(SECRET)
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    ODD[odd](path)
    for words in COMMANDS[place]:
        done = here(*(word.format(run=run.name) for word in words.split()))
        assert done.returncode in (0, 2, 4), done
        if done.returncode:
            assert (done.stdout, done.stderr.count("\n")) == ("", 1), done
        assert SECRET not in done.stdout + done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("place", COMMANDS)
def test_what_may_not_be_read_is_one_line(here: Any, tmp_path: Path, place: str) -> None:
    run = fake_run(tmp_path / "results", 1)
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.touch(0)
    for words in COMMANDS[place]:
        done = here(*(word.format(run=run.name) for word in words.split()))
        assert done.returncode in (0, 2), done
        assert done.stderr.count("\n") <= 1
