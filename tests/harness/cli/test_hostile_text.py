"""Control characters of runs, backends, file names and the command line reach no terminal."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ran
from tests.made_runs import case, problem, row, write_run

pytestmark = pytest.mark.long

ESCAPE = "\x1b]0;title\x07\x1b[31m\x9b2J\u202e\u2066\u200b"
SHOWN = r"\x1b]0;title"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
ONE_CASE = ("--batch", "1", "--seq-len", "64", "--d-model", "32", "--heads", "2", "--device", "cpu")
QUICK = ("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 1}")


def assert_inert(done: subprocess.CompletedProcess[str], *, shown: bool = True) -> None:
    assert not CONTROLS.search(done.stdout), done.stdout
    assert not CONTROLS.search(done.stderr), done.stderr
    assert not shown or SHOWN in done.stdout + done.stderr


@pytest.fixture
def run(tmp_path: Path) -> Path:
    cases = [case(backend, problem(128, 8)) for backend in (ESCAPE, "sdpa")]
    rows = [row(cases[0], "crashed", reason=ESCAPE, log_tail=ESCAPE), row(cases[1])]
    changes = {"name": ESCAPE, "question": ESCAPE}
    return write_run(tmp_path / "results", cases, rows, scenario=changes, device=ESCAPE)


@pytest.mark.parametrize(
    "words",
    [
        ("show", "--all"),
        ("export", "--format", "csv"),
        ("export", "--format", "github-benchmark"),
        ("export", "--format", "md"),
    ],
)
def test_a_run_folder_has_no_power_over_the_terminal(
    attnbench: Any, run: Path, words: tuple[str, ...]
) -> None:
    done = attnbench(words[0], run, *words[1:])
    assert done.returncode == 0, done.stderr
    assert_inert(done, shown=words[0] == "show")


def test_a_backend_shows_its_name_and_its_error_but_does_not_act(
    attnbench: Any, tmp_path: Path
) -> None:
    code = f"def prepare(problem, inputs, weights):\n    raise ValueError({ESCAPE!r})\n"
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / f"a{ESCAPE}.py").write_text(code)
    known = {"ATTNBENCH_BACKENDS": str(tmp_path)}
    assert_inert(attnbench("list", "backends", env=known))
    done = attnbench("run", "--backends", "mine", *ONE_CASE, *QUICK, env=known)
    assert done.returncode == 1
    assert_inert(done)


def test_a_traceback_of_our_own_is_inert_too() -> None:
    code = (
        "from attnbench.harness.cli import app\n"
        "def fails(**_):\n"
        f"    raise LookupError({ESCAPE!r})\n"
        "app.app = fails\n"
        "app.main()\n"
    )
    done = ran([sys.executable, "-c", code])
    assert "Traceback" in done.stderr
    assert_inert(done)
