"""Whatever a backend does, the run goes on, every case ends as exactly one row, and nothing is left
behind.
"""

import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from attnbench.harness.run.run_rows import RunResult
from tests.conftest import ROOT, command_line, environment
from tests.harness.run.small_runs import (
    QUICK,
    axes,
    by_backend,
    is_alive,
    rows_of,
    run_in,
    wait_for_end,
    worker_pids,
)

pytestmark = pytest.mark.long


FAULTS = [
    ("crashes", "crashed", "SIGSEGV", 1),
    ("killed", "crashed", "SIGKILL, maybe by the host's out-of-memory killer", 1),
    ("dies_of_signal_35", "crashed", "signal 35 (SIGRTMIN+1)", 1),
    ("runs_out_of_memory", "oom", "64.00 GiB more did not fit into the budget of", 0),
    ("lies", "incorrect", "times as far from the exact result as the textbook formula in fp32", 1),
    ("gives_nan", "incorrect", "the output has NaN or infinity", 1),
    ("raises", "error", "KeyError: 'a bug of the backend'", 1),
    ("kills_its_judge", "error", "the process that judges its results has ended", 1),
    ("scribbles", "error", "bad reply: b'nonsense' is not an event", 1),
    ("needs_package", "unavailable", "no_such_package_for_attnbench", 0),
    ("falls_back:flash", "error", "the kernel flash was requested, but matmul+softmax ran", 1),
]


HARMLESS = ("naive", "chooses", "talks", "forks", "escapes", "fits_alone")


class Together(NamedTuple):
    """A run of several backends: its folder, its last rows by backend, the exit code."""

    folder: Path
    rows: dict[str, dict]
    code: int


def together(folder: Path, *backends: str, **env: str) -> Together:
    done = run_in(folder, *axes(",".join(backends)), *QUICK, env=env)
    run = folder / done.stdout.strip()
    return Together(run, by_backend(run), done.returncode)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory) -> Together:
    """All faults beside two backends without."""
    folder = tmp_path_factory.mktemp("faulty")
    return together(folder, "fused", *(name for name, *_ in FAULTS), "sdpa")


@pytest.fixture(scope="module")
def harmless(tmp_path_factory) -> Together:
    """Correct backends that do more than compute; FORKS_PID and ESCAPES_PID beside the results."""
    folder = tmp_path_factory.mktemp("harmless")
    files = {name: str(folder / name) for name in ("FORKS_PID", "ESCAPES_PID")}
    return together(folder, *HARMLESS, **files)


@pytest.mark.parametrize(("backend", "status", "reason", "exit_code"), FAULTS)
def test_a_fault_is_one_row_and_the_others_are_measured(faulty, backend, status, reason, exit_code):
    row = faulty.rows[backend]
    assert row["status"] == status
    assert reason in row["reason"]
    assert row["block_ms"] is None
    assert {faulty.rows[name]["status"] for name in ("fused", "sdpa")} == {"ok"}
    assert faulty.rows["fused"]["session"] == faulty.rows["sdpa"]["session"]
    statuses = Counter({"ok": 2, status: 1})
    assert RunResult(path=faulty.folder, statuses=statuses).exit_code == exit_code
    assert faulty.code == 1


def test_what_a_backend_chose_while_it_was_set_up_is_kept_and_its_time_is_in_no_latency(
    harmless, faulty
):
    chooses = harmless.rows["chooses"]
    assert chooses["configuration"] == {"tile": [16, 64], "tune_ms": 50}
    assert chooses["prepare_ms"] >= 50
    assert chooses["first_call_ms"] > 0
    assert min(min(block) for block in chooses["block_ms"][0]) < 50
    assert faulty.rows["raises"]["prepare_ms"] is None


def test_a_crash_keeps_the_traceback_of_the_faulthandler(faulty):
    row = faulty.rows["crashes"]
    assert "Fatal Python error: Segmentation fault" in row["log_tail"]
    assert row["phase"] == "gate"


def test_a_hang_ends_at_the_time_limit(attnbench):
    done = attnbench(
        "run", *axes("hangs,hangs_in_c,hangs_in_launch,sdpa"), *QUICK, "--timeout", "4"
    )
    rows = rows_of(done)
    launch = ", in a launch of forward of Config(warps=8) that has not returned"
    for backend, where in (("hangs", ""), ("hangs_in_c", ""), ("hangs_in_launch", launch)):
        assert rows[backend]["status"] == "timeout"
        assert rows[backend]["reason"].startswith(f"more than 4 s in one step{where};")
        assert rows[backend]["spent_s"] > 3.5
    assert rows["sdpa"]["status"] == "ok"
    assert done.returncode == 1


def test_a_process_that_a_backend_leaves_behind_is_killed(harmless):
    assert harmless.rows["forks"]["status"] == "ok"
    pid = (harmless.folder.parents[1] / "FORKS_PID").read_text()
    assert not is_alive(int(pid))


BAD_REPLIES = {
    "deeply": "is not an event",
    "wrong_type": "facts.case: Input should be a valid string",
    "wrong_field": "running.more: Extra inputs are not permitted",
    "unknown_event": "event: Input tag 'finished'",
    "unknown_case": "running of 'another' answers no request",
    "another_answer": "free answers no request",
    "too_long": "an event of more than 16777216 bytes",
}


@pytest.mark.nightly
def test_whatever_comes_through_the_reply_channel_costs_only_the_case_that_sent_it(attnbench):
    backends = [f"babbles:{variant}" for variant in BAD_REPLIES]
    done = attnbench("run", *axes(",".join(["sdpa", *backends])), *QUICK)
    rows = rows_of(done)
    assert rows.pop("sdpa")["status"] == "ok"
    assert {row["status"] for row in rows.values()} == {"error"}
    for variant, said in BAD_REPLIES.items():
        reason = rows[f"babbles:{variant}"]["reason"]
        assert reason.startswith("bad reply: ")
        assert said in reason
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def escaped_pids(file: Path) -> list[int]:
    """Those that are alive; waits for the first."""
    deadline = time.monotonic() + 60
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [pid for pid in map(int, file.read_text().split()) if is_alive(pid)]


def test_a_process_that_has_dropped_everything_that_tells_where_it_comes_from_is_killed(harmless):
    assert harmless.rows["escapes"]["status"] == "ok"
    assert escaped_pids(harmless.folder.parents[1] / "ESCAPES_PID") == []


def test_it_is_also_killed_if_the_run_was(tmp_path):
    pid_file = tmp_path / "pids"
    process = subprocess.Popen(
        command_line("run", *axes("escapes,hangs"), *QUICK),
        cwd=tmp_path,
        env=environment({"ESCAPES_PID": str(pid_file)}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    escaped = escaped_pids(pid_file)
    assert escaped
    left = [*worker_pids(process.pid), *escaped]
    process.kill()
    process.wait()
    wait_for_end(left)


def test_what_backends_print_goes_to_a_capped_log_and_not_to_stdout(harmless):
    assert harmless.rows["talks"]["status"] == "ok"
    sizes = [log.stat().st_size for log in harmless.folder.glob("logs/*.log")]
    assert 1 << 19 < max(sizes) <= 1 << 20


def test_out_of_memory_beside_others_is_tried_again_alone(harmless):
    assert harmless.rows["fits_alone"]["status"] == "ok"
    assert harmless.rows["fits_alone"]["session"] != harmless.rows["naive"]["session"]


def test_a_process_that_a_backend_has_spoiled_costs_no_other_case(attnbench, tmp_path):
    """It leaves its process no descriptor: our own work, not its call, fails in that process."""
    shutil.copy(ROOT / "tests" / "faults" / "hostile.py", tmp_path)
    done = attnbench(
        *("run", *axes("sdpa,hostile:limits_itself,fused", seq_len=16, d_model=16), *QUICK),
        env={"ATTNBENCH_BACKENDS": str(tmp_path), "HOSTILE_WHEN": "first"},
    )
    rows = rows_of(done)
    assert {name: rows[name]["status"] for name in ("sdpa", "fused")} == dict.fromkeys(
        ("sdpa", "fused"), "ok"
    )
    assert rows["hostile:limits_itself"]["status"] == "crashed"
    assert rows["sdpa"]["session"] != rows["fused"]["session"], "each was measured alone"
    assert done.returncode == 1


def test_a_terabyte_problem_is_refused_without_an_allocation(attnbench):
    huge = axes("fused,sdpa", seq_len="1m", d_model=1024, batch=64)
    done = attnbench("run", *huge, *QUICK, "--memory-gib", "1")
    rows = rows_of(done)
    assert {row["status"] for row in rows.values()} == {"predicted_oom"}
    assert "times the budget" in rows["fused"]["reason"]
    assert rows["fused"]["predicted_peak_bytes"] > 1 << 40
    assert done.returncode == 0


def test_memory_budget_ends_fused_for_real_and_sdpa_goes_on(attnbench):
    flags = axes("fused,sdpa", seq_len="4k", d_model=64)
    done = attnbench("run", *flags, *QUICK, "--memory-gib", "0.2")
    rows = rows_of(done)
    assert rows["fused"]["status"] == "oom"  # needs 2 * 2 * 4096^2 * 4 bytes = 0.25 GiB
    assert rows["fused"]["reason"] == "128.0 MiB more did not fit into the budget of 204.8 MiB"
    assert rows["sdpa"]["status"] == "ok"


def test_what_the_gate_holds_does_not_count_against_the_case(attnbench):
    flags = axes("sdpa", seq_len="4k", d_model=512, heads=8, passes="forward+backward")
    alone = ("--device", "cpu", "--set", "measure=[memory]", "--memory-gib", "0.115")
    done = attnbench("run", *flags, *alone)
    row = rows_of(done)["sdpa"]
    assert row["status"] == "ok", row["reason"]
    needed = row["input_bytes"] + row["peak_bytes"]
    exact_gradients = 3 * 8 * 4096 * 64 * 8
    assert needed < 0.115 * 2**30 < needed + exact_gradients  # else this test shows nothing


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["compiles:slowly", "compiles:ahead"])
@pytest.mark.parametrize(("seconds", "status"), [(5, "ok"), (600, "timeout")])
def test_compiling_may_take_five_times_as_long_as_another_step(attnbench, backend, seconds, status):
    variables = {"COMPILES_S": str(seconds)}
    done = attnbench("run", *axes(backend), *QUICK, "--timeout", "4", env=variables)
    row = rows_of(done)[backend]
    assert row["status"] == status
    if status == "timeout":
        assert row["phase"] == "compile"
        assert row["reason"].startswith("more than 20 s in one step")
