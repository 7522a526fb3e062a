"""A run that is stopped between the parts of a study goes on after the last of them; one that lacks
the memory for a study goes on with the next.
"""

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.harness.run.small_runs import start_and_wait_for_rows, wait_for_end, worker_pids
from tests.made_runs import read_rows

pytestmark = pytest.mark.long

PARTS = (
    *("--backends", "sdpa", "--batch", "1", "--seq-len", "16", "--d-model", "16", "--heads", "2"),
    *("--device", "cpu", "--set", "studies=[trained_heads:majority]"),
)
ONLY = ("--only", "*-heads[24]", "--only", "*-heads1", "--skip", "*-heads16")
HEADS = (1, 2, 4)
WAITS_AT = 4  # heads
SHORT = f"""
import os, sys, time
if "attnbench.harness.worker.serve" in sys.orig_argv:
    import attnbench.harness.heads.studies.trained_heads as study
    study.GOALS["majority"] = study.Goal(None, 2)
    train = study.trained
    def trained(name, heads, *args, **given):
        while heads == {WAITS_AT} and not os.path.exists(os.environ["GO"]):
            time.sleep(0.02)
        return train(name, heads, *args, **given)
    study.trained = trained
"""


@pytest.fixture
def short(tmp_path: Path) -> dict[str, str]:
    """Two steps per training; the part with 4 heads waits for the file GO."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SHORT)
    path = os.pathsep.join(map(str, (folder, ROOT / ".package")))
    return {"PYTHONPATH": path, "GO": str(tmp_path / "go")}


def test_a_run_that_was_stopped_trains_only_the_parts_that_are_missing(
    tmp_path: Path, attnbench, short: dict[str, str]
) -> None:
    process, run = start_and_wait_for_rows(tmp_path, (*PARTS, *ONLY), rows=2, env=short)
    workers = worker_pids(process.pid)
    process.kill()
    process.wait(60)
    wait_for_end(workers)
    before = (run / "rows.jsonl").read_bytes()
    stopped = {row["part"]["heads"]: row["status"] for row in read_rows(run)}
    assert {heads for heads, status in stopped.items() if status == "ok"} == {1, 2}
    assert set(stopped.values()) <= {"ok", "interrupted"}
    Path(short["GO"]).touch()
    attnbench("run", "--resume", run, env=short, check=True)
    assert (run / "rows.jsonl").read_bytes().startswith(before)
    rows = read_rows(run)
    trained = [row["part"]["heads"] for row in rows if row["status"] == "ok"]
    assert sorted(trained) == sorted(HEADS), "each part once"
    assert all(len(row["findings"]) >= 5 for row in rows if row["status"] == "ok")
    again = attnbench("run", "--resume", run, env=short)
    assert again.returncode == 0
    assert read_rows(run) == rows
    alone = attnbench("run", *PARTS, "--only", "majority-heads2", env=short)
    (wanted,) = read_rows(Path(alone.stdout.strip()))
    (found,) = [row for row in rows if row["part"]["heads"] == 2 and row["status"] == "ok"]
    for one, other in zip(found["findings"], wanted["findings"], strict=True):
        assert one["step_loss_nats"] == pytest.approx(other["step_loss_nats"], abs=1e-6, rel=0)


GREEDY = """
import sys
if "attnbench.harness.worker.serve" in sys.orig_argv:
    import attnbench.harness.studies.score_scale as study
    def run(problem, device, seed):
        import torch
        yield {"bytes": torch.empty(1 << 45, dtype=torch.uint8).numel()}
    study.run = run
"""


def test_a_study_that_lacks_memory_is_oom_and_no_failure(tmp_path: Path, attnbench) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(GREEDY)
    path = os.pathsep.join(map(str, (tmp_path / "site", ROOT / ".package")))
    words = (*PARTS[:-2], "--set", "studies=[score_scale,parameter_count]")
    done = attnbench("run", *words, "--skip", "*fp32*", env={"PYTHONPATH": path}, check=True)
    short, counted = read_rows(Path(done.stdout.strip()))
    assert (short["status"], short["findings"], counted["status"]) == ("oom", [], "ok")
    assert short["reason"].startswith("32.0 TiB more did not fit into the budget of")


def test_what_a_study_times_is_timed_in_new_processes(tmp_path: Path, attnbench) -> None:
    small = (*PARTS[:-1], "studies=[batch_invariance]")
    one = "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}"
    done = attnbench("run", *small, "--set", one, "--only", "study-*-process[12]")
    run = Path(done.stdout.strip())
    rows = [row for row in read_rows(run) if row["kind"] == "study"]
    assert [row["part"] for row in rows] == [{"process": 1}, {"process": 2}]
    assert {one["process"] for row in rows for one in row["findings"]} == {1, 2}
    assert len(list((run / "logs").glob("worker-*.log"))) == 1 + 2
