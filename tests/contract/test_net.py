"""What a run must not gather, and what reading one must not load."""

import os
import time
from pathlib import Path

from tests.conftest import ROOT
from tests.contract.conftest import Attnbench, only_run, rows, started

CASES = 48
MANY = f"""\
name: many
question: Does anything grow with the number of cases?
backends: [sdpa]
device: cpu
measure: [memory]
grid: {{batch: 1, seq_len: {[*range(8, 8 + CASES)]}, d_model: 16, heads: 1}}
"""
NO_TORCH = "raise ImportError('a reader of results imports no torch')\n"


def test_a_run_holds_no_file_open_for_a_case(tmp_path: Path) -> None:
    (tmp_path / "many.yaml").write_text(MANY)
    run = started("run", "many.yaml", "--runs", "runs", cwd=tmp_path, stderr=None)
    counts: dict[int, int] = {}  # of open files, by the rows on disk
    while run.poll() is None:
        written = sum(path.read_text().count("\n") for path in tmp_path.glob("runs/2*/rows.jsonl"))
        try:
            counts[written] = len([*Path(f"/proc/{run.pid}/fd").iterdir()])
        except OSError:
            break  # it has ended
        time.sleep(0.02)
    assert run.wait() == 0
    assert len(rows(only_run(tmp_path / "runs"))) == CASES
    early, late = (
        [count for done, count in counts.items() if done and (done < CASES / 2) is is_early]
        for is_early in (True, False)
    )
    assert early
    assert late
    assert max(late) < min(early) + CASES / 4


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
