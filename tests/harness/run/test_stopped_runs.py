"""A run that is killed, or stopped by a signal or a full disk, keeps its rows and can be resumed.

And two runs do not disturb each other.
"""

import json
import os
import re
import signal
import subprocess
import time

import pytest

from attnbench.harness.process.device_lock import device_lock
from tests.conftest import command_line, environment, ran
from tests.harness.run.small_runs import (
    QUICK,
    axes,
    by_backend,
    start_and_wait_for_rows,
    wait_for_end,
    worker_pids,
)
from tests.made_runs import read_rows

pytestmark = pytest.mark.long


LONG = [
    *axes("fused,sdpa", seq_len="32,64,96"),
    "--set",
    "plan={processes: 1, min_blocks: 40, max_blocks: 40, budget_s: 100}",
    "--device",
    "cpu",
]


def test_killed_parent_leaves_no_worker_and_resume_adds_exactly_what_is_missing(
    tmp_path, attnbench
):
    process, run = start_and_wait_for_rows(tmp_path, LONG, rows=2)
    workers = worker_pids(process.pid)
    assert workers
    process.kill()
    process.wait()
    wait_for_end(workers)
    before = (run / "rows.jsonl").read_bytes()
    done = attnbench("run", "--resume", run, check=True)
    assert done.stdout.strip() == str(run)
    after = (run / "rows.jsonl").read_bytes()
    assert after.startswith(before)
    assert len(by_backend(run)) == 2
    rows = [json.loads(line) for line in after.splitlines()]
    assert len(rows) == 6
    assert {row["status"] for row in rows} == {"ok"}
    again = attnbench("run", "--resume", run)
    assert again.returncode == 0
    assert (run / "rows.jsonl").read_bytes() == after


def test_a_signal_ends_the_run_in_order_and_resume_finishes_it(tmp_path, attnbench):
    process, run = start_and_wait_for_rows(tmp_path, LONG, rows=2)
    workers = worker_pids(process.pid)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 143
    last = (tmp_path / "stderr").read_text().splitlines()[-1]
    assert re.fullmatch(
        r"Stopped: \d of 6 cases (is|are) kept. Go on: attnbench run --resume (\S+)", last
    )
    assert last.endswith(run.name)
    wait_for_end(workers)
    rows = read_rows(run)
    assert len(rows) == 6
    assert {row["status"] for row in rows} == {"ok", "interrupted"}
    stopped = [row for row in rows if row["status"] == "interrupted"]
    assert all("--resume" in row["reason"] for row in stopped)
    assert attnbench("run", "--resume", run).returncode == 0
    final = {row["case"]: row for row in read_rows(run)}
    assert {row["status"] for row in final.values()} == {"ok"}
    assert {
        row["attempt"] for row in final.values() if row["case"] in {row["case"] for row in stopped}
    } == {2}


def test_full_disk_stops_the_run_and_saves_the_row_on_stderr(tmp_path, attnbench):
    wrapper = (
        "import resource, sys, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000));"
        " sys.argv = ['attnbench', *sys.argv[1:]]; runpy.run_module('attnbench',"
        " run_name='__main__')"
    )
    flags = (*axes("fused,sdpa,naive", seq_len="32,64,128"), *QUICK, "--out", str(tmp_path / "r"))
    command = [command_line()[0], "-c", wrapper, "run", *flags]
    done = ran(command)
    assert done.returncode == 1
    assert "rows.jsonl: File too large" in done.stderr
    (run,) = (tmp_path / "r").glob("2*")
    saved = [row["case"] for row in read_rows(run)]
    dumped = [
        json.loads(line)["case"]
        for line in done.stderr.splitlines()
        if line.startswith('{"schema"')
    ]
    assert saved
    assert len(dumped) == 1
    assert dumped[0] not in saved


def test_a_second_run_on_the_device_is_refused_with_the_holders_pid_or_waits(tmp_path, attnbench):
    with device_lock("cpu", wait=True, check=lambda: None):
        refused = attnbench("run", *axes("sdpa"), *QUICK)
        command = command_line("run", *axes("sdpa"), *QUICK, "--wait")
        waiting = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 60
        while not worker_pids(waiting.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(1)
        assert waiting.poll() is None
        assert not list(tmp_path.glob("results/2*"))
    output, error = waiting.communicate(timeout=120)
    assert refused.returncode == 4
    assert f"another run (process {os.getpid()}) is measuring on this cpu" in refused.stderr
    assert waiting.returncode == 0, error
    assert by_backend(tmp_path / output.strip())["sdpa"]["status"] == "ok"
