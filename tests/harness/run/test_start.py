"""What is executed and imported: what the command line names, never what a folder offers. Files of
the user's that studies look at, and devices elsewhere.
"""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.start import RunOptions, resume_run, start_run
from attnbench.harness.scenario import load
from attnbench.harness.scenario.selection import Selection
from tests.conftest import ran
from tests.made_runs import case, problem, read_rows, write_run

OPTIONS = RunOptions(command=["test"], listener=Listener())
GRID = ("--batch", "1", "--seq-len", "64", "--d-model", "32", "--heads", "2", "--device", "cpu")
QUICK = ("--set", "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 1}")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that leaves `ran` beside it."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\nexit 1\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("more", [{"environments": True}, {"replica": 2}])
def test_a_run_of_several_interpreters_is_not_resumed_and_no_program_of_its_file_runs(
    tmp_path: Path, program: Path, more: dict[str, Any]
) -> None:
    one = {"name": "old", "path": str(program), "environment": {}}
    meta = {"environments": [one]} if "environments" in more else {}
    cases = [case("fused", problem(64, 2)) | ({} if meta else more)]
    run = write_run(tmp_path / "results", cases, [], name="made", **meta)
    with pytest.raises(BadInput, match="comes from an older version and plans what") as refusal:
        resume_run(run, OPTIONS)
    assert not (tmp_path / "ran").exists()
    assert str(program) not in str(refusal.value)


# ---- the current folder --------------------------------------------------------------------------

STRAYS = ("numpy", "torch", "queue", "types", "json", "typing", "ctypes", "attnbench")


@pytest.fixture
def strays(tmp_path: Path) -> Path:
    """A current folder with files that are named like modules; each says when it is imported."""
    for name in STRAYS:
        line = f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r} + ' ')\n"
        (tmp_path / f"{name}.py").write_text(line)
    (tmp_path / "mine.py").write_text(
        "import torch\n\n\ndef attend(q, k, v, *, causal, scale):\n"
        "    return torch.nn.functional.scaled_dot_product_attention("
        "q, k, v, is_causal=causal, scale=scale)\n"
    )
    return tmp_path


def statuses(run: Path) -> list[str]:
    return [row["status"] for row in read_rows(run)]


def in_folder(
    folder: Path, *words: str, python: tuple[str, ...] = ("-P",)
) -> subprocess.CompletedProcess[str]:
    """As the installed command starts: without the current folder in front."""
    return ran([sys.executable, *python, "-m", "attnbench", *words], cwd=folder)


@pytest.mark.long
def test_with_permission_it_comes_last_so_that_nothing_else_is_shadowed(strays: Path) -> None:
    backends = ("--backends", "fused,mine:attend", "--allow-import")
    done = in_folder(strays, "run", *backends, *GRID, *QUICK)
    assert not (strays / "imported").exists(), (strays / "imported").read_text()
    assert done.returncode == 0, done.stderr
    assert statuses(strays / done.stdout.strip()) == ["ok", "ok"]


def test_python_m_attnbench_forgets_the_current_folder(tmp_path: Path) -> None:
    for name in ("numpy", "queue", "rich"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n")
    done = in_folder(tmp_path, "list", "scenarios", python=())
    assert done.returncode == 0, done.stderr
    assert "quickstart" in done.stdout


def test_files_are_looked_at_on_this_machine_alone(tmp_path: Path) -> None:
    given: Any = SimpleNamespace(name="m", study="any", flag="--given m")
    options = RunOptions(command=(), listener=Listener(), engine=SimpleNamespace())
    with pytest.raises(BadInput, match="works on this machine only; leave out --on"):
        start_run(load("quickstart"), tmp_path, 0, Selection(attachments=(given,)), options)
    assert [*tmp_path.iterdir()] == []
