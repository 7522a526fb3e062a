"""Reading a run needs no torch."""

import os
from pathlib import Path

from tests.conftest import ROOT
from tests.contract.conftest import Attnbench

NO_TORCH = "raise ImportError('a reader of results imports no torch')\n"


def test_a_run_is_shown_without_torch(
    attnbench: Attnbench, finished_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "torch.py").write_text(NO_TORCH)
    env = {"PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{ROOT / '.package'}"}
    for words in ((), ("--format", "html", "-o", "page.html"), ("--format", "csv", "-o", "-")):
        done = attnbench("show", finished_run, *words, env=env)
        assert done.returncode == 0, done.stderr
    assert attnbench("run", "quickstart", "--device", "cpu", env=env).returncode != 0
