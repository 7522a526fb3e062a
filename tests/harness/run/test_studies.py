"""A run that lacks the memory for a study, or whose study fails, goes on with the next; each part
that times something has a process of its own.
"""

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.harness.run.small_runs import run_in
from tests.made_runs import read_rows

pytestmark = pytest.mark.long

SMALL = (
    *("--backends", "sdpa", "--batch", "1", "--seq-len", "16", "--d-model", "16", "--heads", "2"),
    *("--device", "cpu"),
)
GREEDY = """
import sys
if "attnbench.harness.worker.serve" in sys.orig_argv:
    import attnbench.harness.studies.score_scale as study
    def run(problem, device, seed):
        import torch
        yield {"bytes": torch.empty(1 << 45, dtype=torch.uint8).numel()}
    study.run = run
    import attnbench.harness.studies.head_copies as wrong
    def fails(problem, device, seed):
        raise RuntimeError("a bug of the study")
        yield
    wrong.run = fails
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of four studies: one that asks for too much memory, one that fails, one that counts, and one
    whose parts are each timed in a process.
    """
    folder = tmp_path_factory.mktemp("studies")
    (folder / "sitecustomize.py").write_text(GREEDY)
    path = os.pathsep.join(map(str, (folder, ROOT / ".package")))
    one = "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}"
    studies = "studies=[score_scale,head_copies,parameter_count,batch_invariance]"
    sets = ("--set", studies, "--set", one)
    chosen = ("--skip", "*fp32*", "--skip", "*-process[345]")
    done = run_in(folder, *SMALL, *sets, *chosen, env={"PYTHONPATH": path})
    assert done.returncode == 1, done.stderr
    return folder / done.stdout.strip()


def test_a_study_that_lacks_memory_is_oom_and_no_failure(run: Path) -> None:
    short, wrong, counted, *_ = read_rows(run)
    assert (short["status"], short["findings"]) == ("oom", [])
    assert short["reason"].startswith("32.0 TiB more did not fit into the budget of")
    assert (wrong["status"], wrong["findings"]) == ("error", [])
    assert "a bug of the study" in wrong["reason"]
    assert (counted["status"], len(counted["findings"])) == ("ok", 10)


def test_what_a_study_times_is_timed_in_new_processes(run: Path) -> None:
    _, _, _, *timed = read_rows(run)
    assert [row["part"] for row in timed] == [{"process": 1}, {"process": 2}]
    assert all(row["findings"] for row in timed)
    # A backend has a second finding, with its process, where a batch changes its bits.
    for row in timed:
        assert {one.get("process") for one in row["findings"]} <= {None, row["part"]["process"]}
    assert len(list((run / "logs").glob("worker-*.log"))) == 1 + 2
