"""attnbench from Python: the same runs and refusals as on the command line, quiet, inside
the caller's process.
"""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import attnbench
from tests.conftest import ROOT, environment, ran, wait_for
from tests.made_runs import fake_run, quickstart

PAGE = (ROOT / "docs" / "api.md").read_text()


def python(code: str, folder: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    return ran([sys.executable, "-c", code], cwd=folder, env=environment(changes), timeout=900)


@pytest.mark.nightly
@pytest.mark.long
def test_the_examples_of_the_documentation_run_in_their_order_and_print_nothing_else(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 6
    done = python("\n".join(blocks), tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        rf"<attnbench.Run {tmp_path}/results/\d{{8}}T\d{{6}}Z-two_backends-[0-9a-f]{{8}}: 4 ok>\n",
        done.stdout,
    )
    assert done.stderr == ""


def test_a_run_that_failed_in_part_is_not_ok_and_says_how(tmp_path: Path) -> None:
    run = attnbench.Run(quickstart(tmp_path))
    assert sum(run.statuses.values()) == len(run.frame()) == 80
    assert not run.ok
    assert "crashed" in repr(run)
    assert str(run.path) in repr(run)
    assert attnbench.Run(fake_run(tmp_path, 1)).ok


def test_a_comparison_has_the_verdicts_of_the_command_line(tmp_path, here):
    base, new = fake_run(tmp_path, 1), fake_run(tmp_path, 2, ratio=1.15)
    found = attnbench.Run(new).compare(attnbench.Run(base))
    latency = found[found["metric"] == "latency"]
    assert set(latency["verdict"]) == {"not decided"}  # how much runs differ is not known here
    assert (latency["ratio"] > 1).all()
    printed = json.loads(here("compare", base, new, "--format", "json").stdout)["cases"]
    assert found["verdict"].tolist() == [one["verdict"] for one in printed]
    assert attnbench.Run(new).compare(str(base)).equals(found)
    judged = attnbench.compare(base, attnbench.Run(new), gate="peak_bytes: 0%")
    assert judged.equals(found)
    assert judged.attrs["gate"]["outcome"] == "passed"


# ---- signals -------------------------------------------------------------------------------------

INTERRUPTED = """
import json, signal, sys, attnbench
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
grid = {"seq_len": 32, "d_model": 16, "heads": 2}
scenario = {"name": "hang", "question": "?", "backends": ["fused", "hangs"], "grid": grid}
before = signal.getsignal(signal.SIGINT)
try:
    attnbench.run(scenario, device="cpu", plan="quick", changes={"plan.budget_s": 0.2})
except KeyboardInterrupt as stopped:
    print("KeyboardInterrupt", stopped)
assert signal.getsignal(signal.SIGINT) is before
(path,) = Path("results").glob("2*")
run = attnbench.open_run(path)
print(json.dumps(run.statuses))
"""


def started(folder: Path, code: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, env=environment(), stdout=-1, stderr=-1, text=True
    )
    wait_for(lambda: list(folder.glob("results/2*/logs/worker-1.log")))
    time.sleep(0.5)
    return process


@pytest.mark.long
def test_ctrl_c_keeps_the_rows_and_raises_and_a_second_one_changes_nothing(tmp_path: Path) -> None:
    with started(tmp_path, INTERRUPTED) as process:
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said, complaints = process.communicate(timeout=120)
    assert process.returncode == 0, complaints
    assert re.match(
        r"KeyboardInterrupt /\S+-hang-\S+ has what was measured;"
        r" attnbench.open_run\('/\S+'\).resume\(\) goes on\n",
        said,
    )
    statuses = json.loads(said.splitlines()[-1])
    assert sum(statuses.values()) == 2
    assert statuses["interrupted"] >= 1


def test_a_row_that_cannot_be_read_is_left_out_only_if_asked(tmp_path: Path) -> None:
    run = attnbench.Run(fake_run(tmp_path, 1))
    whole = run.frame()
    rows = (run.path / "rows.jsonl").read_text()
    (run.path / "rows.jsonl").write_text("{broken\n" + rows)
    for read in (run.frame, run.walls, run.studies, lambda: attnbench.load(run.path)):
        with pytest.raises(attnbench.BadRun, match="read the others with salvage=True"):
            read()
    assert run.frame(salvage=True).equals(whole)
    assert run.walls(salvage=True).empty
