"""Control characters of runs, backends, file names and the command line reach no terminal."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ran
from tests.harness.verbs.test_odd_paths import CONTROLS, ESCAPE

pytestmark = pytest.mark.long

SHOWN = r"\x1b]0;title"
ONE_CASE = ("--batch", "1", "--seq-len", "64", "--d-model", "32", "--heads", "2", "--device", "cpu")
QUICK = ("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 1}")


def assert_inert(done: subprocess.CompletedProcess[str]) -> None:
    assert not CONTROLS.search(done.stdout), done.stdout
    assert not CONTROLS.search(done.stderr), done.stderr
    assert SHOWN in done.stdout + done.stderr


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
        "from attnbench.harness.verbs import app\n"
        "def fails(**_):\n"
        f"    raise LookupError({ESCAPE!r})\n"
        "app.app = fails\n"
        "app.main()\n"
    )
    done = ran([sys.executable, "-c", code])
    assert "Traceback" in done.stderr
    assert_inert(done)
