"""Whatever a backend does, the run goes on, every case ends as exactly one row, and nothing is left
behind.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from attnbench.harness.process.device_lock import device_lock
from tests.conftest import ROOT, command_line, environment

pytestmark = pytest.mark.long

QUICK = (
    "--set",
    "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}",
    "--device",
    "cpu",
)


def axes(backends: str, **others: object) -> list[str]:
    """Flags for a small grid."""
    given = {"batch": 1, "seq_len": "64", "d_model": 32, "heads": 2, **others}
    return [
        "--backends",
        backends,
        *(
            part
            for name, value in given.items()
            for part in (f"--{name.replace('_', '-')}", str(value))
        ),
    ]


def rows_of(done: subprocess.CompletedProcess[str]) -> dict[str, dict]:
    """Last rows by backend; the run folder is the only line on stdout."""
    (line,) = done.stdout.splitlines()
    return by_backend(Path(line))


def by_backend(run: Path) -> dict[str, dict]:
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
    planned = [case["case"] for case in json.loads((run / "run.json").read_text())["cases"]]
    assert sorted(planned) == sorted({row["case"] for row in rows}), "every planned case has a row"
    assert max(Counter((row["case"], row["attempt"]) for row in rows).values()) == 1, (
        "no row is doubled"
    )
    return {row["backend"]: row for row in rows}


FAULTS = [
    ("crashes", "crashed", "SIGSEGV", 1),
    ("killed", "crashed", "SIGKILL, maybe by the host's out-of-memory killer", 1),
    ("dies_of_signal_35", "crashed", "signal 35 (SIGRTMIN+1)", 1),
    ("runs_out_of_memory", "oom", "64.00 GiB more did not fit into the budget of", 0),
    ("lies", "incorrect", "times as far from the exact result as the textbook formula in fp32", 1),
    ("gives_nan", "incorrect", "the output has NaN or infinity", 1),
    ("raises", "error", "KeyError: 'a bug of the backend'", 1),
    ("scribbles", "error", "bad reply: b'nonsense' is not an event", 1),
    ("needs_package", "unavailable", "no_such_package_for_attnbench", 0),
    ("falls_back:flash", "error", "the kernel flash was requested, but matmul+softmax ran", 1),
]


@pytest.mark.parametrize(("backend", "status", "reason", "exit_code"), FAULTS)
def test_a_fault_is_one_row_and_the_others_are_measured(
    attnbench, backend, status, reason, exit_code
):
    done = attnbench("run", *axes(f"fused,{backend},sdpa"), *QUICK)
    rows = rows_of(done)
    assert rows[backend]["status"] == status
    assert reason in rows[backend]["reason"]
    assert rows[backend]["block_ms"] is None
    assert {rows[name]["status"] for name in ("fused", "sdpa")} == {"ok"}
    assert rows["fused"]["session"] == rows["sdpa"]["session"]
    assert done.returncode == exit_code, done.stderr


def test_what_a_backend_chose_while_it_was_set_up_is_kept_and_its_time_is_in_no_latency(attnbench):
    rows = rows_of(attnbench("run", *axes("chooses,raises"), *QUICK))
    chooses = rows["chooses"]
    assert chooses["configuration"] == {"tile": [16, 64], "tune_ms": 50}
    assert chooses["prepare_ms"] >= 50
    assert chooses["first_call_ms"] > 0
    assert min(min(block) for block in chooses["block_ms"][0]) < 50
    assert rows["raises"]["prepare_ms"] is None


def test_compiled_code_is_not_held_against_the_memory_budget(attnbench):
    rows = rows_of(
        attnbench("run", *axes("compiles,fused"), *QUICK, "--set", "limits.memory_gib=0.2")
    )
    assert {name: row["status"] for name, row in rows.items()} == {"compiles": "ok", "fused": "ok"}
    # a scalar that torch wraps
    assert abs(rows["compiles"]["peak_bytes"] - rows["fused"]["peak_bytes"]) <= 16


@pytest.mark.parametrize(("seconds", "status"), [(5, "ok"), (600, "timeout")])
def test_compiling_may_take_five_times_as_long_as_another_step(attnbench, seconds, status):
    done = attnbench(
        "run", *axes("compiles:slowly"), *QUICK, "--timeout", "4", env={"COMPILES_S": str(seconds)}
    )
    row = rows_of(done)["compiles:slowly"]
    assert row["status"] == status
    if status == "timeout":
        assert row["phase"] == "compile"
        assert row["reason"].startswith("more than 20 s in one step")


def test_a_crash_keeps_the_traceback_of_the_faulthandler(attnbench):
    row = rows_of(attnbench("run", *axes("crashes"), *QUICK))["crashes"]
    assert "Fatal Python error: Segmentation fault" in row["log_tail"]
    assert row["phase"] == "gate"


@pytest.mark.parametrize("backend", ["hangs", "hangs_in_c"])
def test_a_hang_ends_at_the_time_limit(attnbench, backend):
    done = attnbench("run", *axes(f"{backend},sdpa"), *QUICK, "--timeout", "4")
    rows = rows_of(done)
    assert rows[backend]["status"] == "timeout"
    assert rows[backend]["reason"].startswith("more than 4 s")
    assert 3.5 < rows[backend]["spent_s"] < 20
    assert rows["sdpa"]["status"] == "ok"
    assert done.returncode == 1


def test_a_process_that_a_backend_leaves_behind_is_killed(attnbench, tmp_path):
    pid_file = tmp_path / "pid"
    done = attnbench("run", *axes("forks"), *QUICK, env={"FORKS_PID": str(pid_file)})
    assert rows_of(done)["forks"]["status"] == "ok"
    assert not is_alive(int(pid_file.read_text()))


BAD_REPLIES = {
    "deeply": "is not an event",
    "wrong_type": "facts.case: Input should be a valid string",
    "wrong_field": "running.more: Extra inputs are not permitted",
    "unknown_event": "event: Input tag 'finished'",
    "unknown_case": "running of 'another' answers no request",
    "another_answer": "free answers no request",
    "too_long": "an event of more than 16777216 bytes",
}


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


def test_a_process_that_has_dropped_everything_that_tells_where_it_comes_from_is_killed(
    attnbench, tmp_path
):
    pid_file = tmp_path / "pids"
    done = attnbench("run", *axes("escapes"), *QUICK, env={"ESCAPES_PID": str(pid_file)})
    assert rows_of(done)["escapes"]["status"] == "ok"
    assert escaped_pids(pid_file) == []


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


def test_a_run_started_with_nohup_does_not_end_when_the_terminal_does(tmp_path):
    command = ["nohup", *command_line("run", *LONG[:-4], *QUICK)]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if worker_pids(process.pid):  # else nohup itself may be hit
            process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    assert {row["status"] for row in by_backend(tmp_path / output.strip()).values()} == {"ok"}


def test_what_backends_print_goes_to_a_capped_log_and_not_to_stdout(attnbench):
    done = attnbench("run", *axes("talks"), *QUICK)
    assert rows_of(done)["talks"]["status"] == "ok"
    (log,) = Path(done.stdout.strip()).glob("logs/*.log")
    assert 1 << 19 < log.stat().st_size <= 1 << 20


def test_out_of_memory_beside_others_is_tried_again_alone(attnbench):
    rows = rows_of(attnbench("run", *axes("naive,fits_alone"), *QUICK))
    assert rows["fits_alone"]["status"] == "ok"
    assert rows["fits_alone"]["session"] != rows["naive"]["session"]


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


def test_a_refused_problem_says_why_and_the_rest_runs(attnbench):
    rows = rows_of(attnbench("run", *axes("refuses,fused"), "--causal", *QUICK))
    assert rows["refuses"]["status"] == "unsupported"
    assert rows["refuses"]["reason"] == "causal problems are not implemented"
    assert rows["fused"]["status"] == "ok"


def test_a_worker_without_compiled_backends_has_no_compiler_beside_them(attnbench):
    """Whatever imports it: it takes a second of every worker, and 100 MiB."""
    rows = rows_of(attnbench("run", *axes("naive,fused,sdpa,wants_no_compiler"), *QUICK))
    assert {name: (row["status"], row["reason"]) for name, row in rows.items()} == dict.fromkeys(
        rows, ("ok", "")
    )


def test_a_terabyte_problem_is_refused_without_an_allocation(attnbench):
    done = attnbench(
        "run",
        *axes("fused,sdpa", seq_len="1m", d_model=1024, batch=64),
        *QUICK,
        "--set",
        "limits.memory_gib=1",
    )
    rows = rows_of(done)
    assert {row["status"] for row in rows.values()} == {"predicted_oom"}
    assert "times the budget" in rows["fused"]["reason"]
    assert rows["fused"]["predicted_peak_bytes"] > 1 << 40
    assert done.returncode == 0


def test_memory_budget_ends_fused_for_real_and_sdpa_goes_on(attnbench):
    done = attnbench(
        "run",
        *axes("fused,sdpa", seq_len="4k", d_model=64),
        *QUICK,
        "--set",
        "limits.memory_gib=0.2",
    )
    rows = rows_of(done)
    assert rows["fused"]["status"] == "oom"  # needs 2 * 2 * 4096^2 * 4 bytes = 0.25 GiB
    assert rows["fused"]["reason"] == "128.0 MiB more did not fit into the budget of 204.8 MiB"
    assert rows["sdpa"]["status"] == "ok"


def start_and_wait_for_rows(
    tmp_path: Path, args: list[str], rows: int
) -> tuple[subprocess.Popen[bytes], Path]:
    process = subprocess.Popen(
        command_line("run", *args),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for file in tmp_path.glob("results/2*/rows.jsonl"):
            if file.read_bytes().count(b"\n") >= rows:
                return process, file.parent
        time.sleep(0.02)
    process.kill()
    process.wait()
    raise AssertionError("no rows came")


def worker_pids(parent: int) -> list[int]:
    with suppress(psutil.Error):
        return [child.pid for child in psutil.Process(parent).children(recursive=True)]
    return []


def is_alive(pid: int) -> bool:
    with suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def wait_for_end(pids: list[int]) -> None:
    deadline = time.monotonic() + 10
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in pids if is_alive(pid)]


LONG = [
    *axes("fused,sdpa", seq_len="32,64,96,128"),
    "--set",
    "plan={processes: 1, min_blocks: 60, max_blocks: 60, budget_s: 100}",
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
    done = attnbench("run", "--resume", run)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(run)
    after = (run / "rows.jsonl").read_bytes()
    assert after.startswith(before)
    assert len(by_backend(run)) == 2
    rows = [json.loads(line) for line in after.splitlines()]
    assert len(rows) == 8
    assert {row["status"] for row in rows} == {"ok"}
    again = attnbench("run", "--resume", run)
    assert again.returncode == 0
    assert (run / "rows.jsonl").read_bytes() == after


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_in_order_and_resume_finishes_it(
    tmp_path, attnbench, number, exit_code
):
    process, run = start_and_wait_for_rows(tmp_path, LONG, rows=2)
    workers = worker_pids(process.pid)
    process.send_signal(number)
    assert process.wait(30) == exit_code
    wait_for_end(workers)
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 8
    assert {row["status"] for row in rows} == {"ok", "interrupted"}
    stopped = [row for row in rows if row["status"] == "interrupted"]
    assert all("--resume" in row["reason"] for row in stopped)
    assert attnbench("run", "--resume", run).returncode == 0
    final = {
        row["case"]: row for row in map(json.loads, (run / "rows.jsonl").read_text().splitlines())
    }
    assert {row["status"] for row in final.values()} == {"ok"}
    assert {
        row["attempt"] for row in final.values() if row["case"] in {row["case"] for row in stopped}
    } == {2}


def test_a_second_signal_ends_at_once(tmp_path):
    process, _ = start_and_wait_for_rows(tmp_path, axes_that_hang(), rows=1)
    workers = worker_pids(process.pid)
    process.send_signal(signal.SIGINT)
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    wait_for_end(workers)


def axes_that_hang() -> list[str]:
    return [*axes("needs_package,hangs"), *QUICK]


def test_full_disk_stops_the_run_and_saves_the_row_on_stderr(tmp_path, attnbench):
    wrapper = (
        "import resource, sys, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (7000, 7000));"
        " sys.argv = ['attnbench', *sys.argv[1:]]; runpy.run_module('attnbench',"
        " run_name='__main__')"
    )
    command = [
        command_line()[0],
        "-c",
        wrapper,
        "run",
        *axes("fused,sdpa,naive", seq_len="32,64,128"),
        *QUICK,
        "--out",
        str(tmp_path / "r"),
    ]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1
    assert "rows.jsonl: File too large" in done.stderr
    (run,) = (tmp_path / "r").glob("2*")
    saved = [json.loads(line)["case"] for line in (run / "rows.jsonl").read_text().splitlines()]
    dumped = [
        json.loads(line)["case"]
        for line in done.stderr.splitlines()
        if line.startswith('{"schema"')
    ]
    assert saved
    assert len(dumped) == 1
    assert dumped[0] not in saved


def test_retry_failed_measures_crashes_again_and_nothing_else(attnbench):
    first = attnbench("run", *axes("crashes,sdpa"), *QUICK)
    run = Path(first.stdout.strip())
    logs = {log.name: log.read_bytes() for log in (run / "logs").iterdir()}
    assert any(b"Segmentation fault" in log for log in logs.values())
    second = attnbench("run", "--resume", run, "--retry-failed")
    assert second.returncode == 1
    rows = [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]
    assert Counter((row["backend"], row["attempt"]) for row in rows) == {
        ("crashes", 1): 1,
        ("sdpa", 1): 1,
        ("crashes", 2): 1,
    }
    assert all((run / "logs" / name).read_bytes() == content for name, content in logs.items()), (
        "a resumed run keeps earlier logs"
    )


def test_resume_in_another_environment_is_refused_unless_forced(attnbench):
    run = Path(attnbench("run", *axes("sdpa"), *QUICK).stdout.strip())
    meta = json.loads((run / "run.json").read_text())
    meta["environment"]["torch"] = "1.0"
    (run / "run.json").write_text(json.dumps(meta))
    refused = attnbench("run", "--resume", run)
    assert refused.returncode == 4
    assert "measured with torch '1.0'" in refused.stderr
    assert attnbench("run", "--resume", run, "--force").returncode == 0


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


def test_a_signal_before_the_first_case_leaves_nothing(tmp_path):
    command = command_line("run", *axes("sdpa"), *QUICK)
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not worker_pids(process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    workers = worker_pids(process.pid)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert error == "stopped before the first case; nothing was measured\n"
    wait_for_end(workers)
    assert list(tmp_path.iterdir()) == []


def test_resume_of_a_run_that_is_being_written_is_refused(tmp_path, attnbench):
    for_minutes = axes("fused,sdpa", seq_len=",".join(str(n) for n in range(32, 4096, 32)))
    process, run = start_and_wait_for_rows(
        tmp_path, [*for_minutes, *LONG[len(for_minutes) :]], rows=1
    )
    try:
        done = attnbench("run", "--resume", run)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert done.returncode == 4
    assert "another run" in done.stderr


def test_what_the_gate_holds_does_not_count_against_the_case(attnbench):
    flags = axes("sdpa", seq_len="4k", d_model=512, heads=8, passes="forward+backward")
    done = attnbench(
        "run",
        *flags,
        "--device",
        "cpu",
        "--set",
        "measure=[memory]",
        "--set",
        "limits.memory_gib=0.09",
    )
    row = rows_of(done)["sdpa"]
    assert row["status"] == "ok", row["reason"]
    needed = row["input_bytes"] + row["peak_bytes"]
    exact_gradients = 3 * 8 * 4096 * 64 * 8
    assert needed < 0.09 * 2**30 < needed + exact_gradients  # else this test shows nothing


def test_a_case_alone_in_its_group_is_tried_again_in_a_fresh_process(attnbench):
    flags = axes("fits_alone", seq_len="64,128", heads="2")
    done = attnbench(
        "run", "--backends", "naive,fits_alone", *flags[2:], *QUICK, "--skip", "naive-b1-n128"
    )
    rows = [
        json.loads(line)
        for line in (Path(done.stdout.strip()) / "rows.jsonl").read_text().splitlines()
    ]
    assert len(rows) == 3
    assert {row["status"] for row in rows} == {"ok"}
