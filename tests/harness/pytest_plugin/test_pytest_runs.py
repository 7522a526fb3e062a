"""Scenarios measured by pytest: the same rows as the command line's, each status in pytest's words,
and an orderly end.
"""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import psutil
import pytest

from attnbench.harness.process.device_lock import device_lock
from tests.conftest import command_line, environment
from tests.harness.pytest_plugin.child_pytest import TINY, child, rows, runs, scenario, start

pytestmark = pytest.mark.long

NO_TRACE = re.compile(r"Traceback|^E  |\.py:\d+", re.MULTILINE)


class Twice(NamedTuple):
    """A folder in which pytest has measured a scenario twice, the second time compared with the
    first, and `attnbench run` once.
    """

    folder: Path
    first: subprocess.CompletedProcess[str]
    second: subprocess.CompletedProcess[str]
    runs: list[Path]


@pytest.fixture(scope="module")
def twice(tmp_path_factory) -> Twice:
    folder = tmp_path_factory.mktemp("twice")
    scenario(folder)
    saved = ("--benchmark-autosave", "--benchmark-json=first.json", "--junitxml=first.xml")
    first = child(folder, "tiny.yaml", "--benchmark-only", *saved)
    two_processes = ("--attnbench-set", "plan.processes=2", "--benchmark-json=second.json")
    second = child(folder, "tiny.yaml", "--benchmark-only", "--benchmark-compare", *two_processes)
    done = subprocess.run(
        command_line("run", "tiny.yaml"),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    made = runs(folder)
    return Twice(
        folder,
        first,
        second,
        [*(path for path in made if path.name not in done.stdout), folder / done.stdout.strip()],
    )


def benchmarks(twice: Twice, name: str) -> list[dict]:
    return json.loads((twice.folder / name).read_text())["benchmarks"]


def test_every_case_passes_and_the_tables_have_all_backends(twice):
    assert twice.first.returncode == twice.second.returncode == 0, (
        twice.first.stdout + twice.second.stdout
    )
    assert "4 passed" in twice.first.stdout
    for length in (16, 32):
        assert (
            f"benchmark 'tiny b1-n{length}-d32-h2-fp32-forward-core': 2 tests" in twice.first.stdout
        )
        for backend in ("fused", "sdpa"):
            assert re.search(
                rf"^tiny\[b1-n{length}-d32-h2-fp32-forward-core-{backend}\] +\d",
                twice.first.stdout,
                re.MULTILINE,
            )


def test_two_saved_sessions_are_compared(twice):
    for length in (16, 32):
        assert (
            f"benchmark 'tiny b1-n{length}-d32-h2-fp32-forward-core': 4 tests"
            in twice.second.stdout
        )
        for backend in ("fused", "sdpa"):
            for source in ("NOW", r"0001_\w+"):
                assert re.search(
                    rf"^tiny\[b1-n{length}-\S+-{backend}\] \({source}\) +\d",
                    twice.second.stdout,
                    re.MULTILINE,
                )
    assert "machine_info is different" not in twice.second.stdout + twice.second.stderr


@pytest.mark.parametrize(("name", "processes"), [("first.json", 1), ("second.json", 2)])
def test_replayed_rounds_are_the_stored_samples_exactly(twice, name, processes):
    found = benchmarks(twice, name)
    stored = rows(twice.runs[processes - 1])
    assert {one["extra_info"]["case"] for one in found} == set(stored)
    for one in found:
        row = stored[one["extra_info"]["case"]]
        assert row["processes"] == processes == len(row["block_ms"])
        samples_s = [
            call / 1e3 for process in row["block_ms"] for block in process for call in block
        ]
        assert len(samples_s) >= 2
        assert one["stats"]["data"] == samples_s
        assert one["stats"]["min"] == min(samples_s)


def test_the_cases_of_a_group_were_measured_in_the_same_blocks(twice):
    for run in twice.runs[:2]:
        sessions = {}
        for row in rows(run).values():
            sessions.setdefault(row["seq_len"], set()).add(row["session"])
        assert [len(of_one) for of_one in sessions.values()] == [1, 1]
        assert len(set.union(*sessions.values())) == 2


def test_rows_are_those_of_the_command_line(twice):
    by_pytest, by_command = rows(twice.runs[0]), rows(twice.runs[-1])
    assert list(by_pytest) == list(by_command)
    same = (
        "status",
        "backend",
        "seq_len",
        "peak_bytes",
        "predicted_peak_bytes",
        "input_bytes",
        "error_ratio",
        "kernel",
        "processes",
    )
    for case, row in by_command.items():
        assert set(by_pytest[case]) == set(row)
        assert {name: by_pytest[case][name] for name in same} == {name: row[name] for name in same}
    meta, wanted = (
        json.loads((run / "run.json").read_text()) for run in (twice.runs[0], twice.runs[-1])
    )
    assert meta["command"] == ["pytest", "-p", *meta["command"][2:]]
    for name in ("scenario", "cases", "environment", "device", "seed"):
        assert meta[name] == wanted[name]


def test_a_benchmark_says_what_its_row_says(twice):
    stored, run = rows(twice.runs[0]), twice.runs[0].name
    for one in benchmarks(twice, "first.json"):
        row = stored[one["extra_info"]["case"]]
        assert one["extra_info"]["run"] == run
        for name in (
            "schema",
            "device",
            "kernel",
            "stop",
            "peak_bytes",
            "predicted_peak_bytes",
            "input_bytes",
            "error_ratio",
            "utilization_tier",
        ):
            assert one["extra_info"][name] == row[name], name
        assert one["extra_info"]["utilization_ratio"] is None
        assert (
            one["extra_info"]["latency_low_ms"]
            <= one["extra_info"]["latency_ms"]
            <= one["extra_info"]["latency_high_ms"]
        )
        assert {name: row[name] for name in one["params"]} == one["params"]
        assert {"backend", "seq_len", "heads", "dtype"} <= set(one["params"])
        assert one["group"] == f"tiny b1-n{row['seq_len']}-d32-h2-fp32-forward-core"


def test_the_json_names_run_and_machine(twice):
    origins = json.loads((twice.folder / "first.json").read_text())["attnbench"]
    environment = json.loads((twice.runs[0] / "run.json").read_text())["environment"]
    assert origins["schema"] == 1
    assert [one.pop("run") for one in origins["runs"]] == [twice.runs[0].name]
    assert origins["runs"] == [{name: environment[name] for name in origins["runs"][0]}]
    assert {"device", "device_name", "driver", "torch", "threads"} <= set(origins["runs"][0])


def test_junit_has_a_test_for_each_case(twice):
    found = ElementTree.parse(twice.folder / "first.xml").getroot().findall(".//testcase")
    assert [case.get("name") for case in found] == [
        f"tiny[b1-n{n}-d32-h2-fp32-forward-core-{b}]" for n in (16, 32) for b in ("fused", "sdpa")
    ]
    for case in found:
        properties = {one.get("name"): one.get("value") for one in case.iter("property")}
        assert properties["status"] == "ok"
        assert properties["run"] == twice.runs[0].name


def test_the_harness_prints_nothing_but_its_last_words(twice):
    where = twice.runs[0].relative_to(twice.folder)
    assert f"4 ok; next: attnbench report {where}" in twice.first.stdout
    assert "writing" not in twice.first.stdout
    assert not re.search(r"^\d/4 ", twice.first.stdout, re.MULTILINE)


def test_a_run_of_pytest_can_be_reported(twice, attnbench):
    done = attnbench("report", twice.runs[0])
    assert done.returncode == 0, done.stderr
    page = Path(done.stdout.strip()).read_text()
    assert "Which is faster on something tiny?" in page
    assert all(case in page for case in rows(twice.runs[0]))


def test_loud_sessions_show_progress_and_only_chosen_cases_are_measured(tmp_path):
    scenario(tmp_path)
    chosen = [f"tiny.yaml::tiny[b1-n{n}-d32-h2-fp32-forward-core-sdpa]" for n in (16, 32)]
    done = child(
        tmp_path,
        *chosen,
        "-s",
        "--benchmark-cprofile=ncalls",
        "--benchmark-group-by=param:heads",
        "--attnbench-out",
        "elsewhere",
    )
    assert done.returncode == 0, done.stdout
    assert "benchmark 'heads=2': 2 tests" in done.stdout
    (run,) = (tmp_path / "elsewhere").glob("2*")
    assert list(rows(run)) == [
        "sdpa-b1-n16-d32-h2-fp32-forward-core",
        "sdpa-b1-n32-d32-h2-fp32-forward-core",
    ]
    assert "2 cases; writing elsewhere" in done.stderr.replace(f"{tmp_path}/", "")
    assert re.search(r"^1/2  sdpa-b1-n16\S+  \S+ ms", done.stderr, re.MULTILINE)


def test_a_histogram_can_be_drawn(tmp_path):
    pytest.importorskip("pygal")
    scenario(tmp_path)
    done = child(tmp_path, "tiny.yaml", "-k", "n16", "--benchmark-histogram=drawn")
    assert done.returncode == 0, done.stdout
    assert "fused" in next(tmp_path.glob("drawn*.svg")).read_text()


FAULTS = TINY.replace(
    "[fused, sdpa]",
    "[fused, refuses, needs_package, crashes, lies, raises, hangs, runs_out_of_memory]",
)
FAULTS = (
    FAULTS.replace("seq_len: [16, 32]", "seq_len: 80, causal: true") + "limits: {timeout_s: 5}\n"
)
ENDS = {
    "fused": ("PASSED", ""),
    "refuses": ("SKIPPED", "unsupported: causal problems are not implemented"),
    "needs_package": (
        "SKIPPED",
        "unavailable: needs no_such_package_for_attnbench, which is not installed",
    ),
    "crashes": ("FAILED", "crashed: SIGSEGV"),
    "lies": ("FAILED", "incorrect: "),
    "raises": ("FAILED", "error: KeyError: 'a bug of the backend'"),
    "hangs": ("FAILED", "timeout: more than 5 s in one step; raise it with --attnbench-timeout"),
    "runs_out_of_memory": ("XFAIL", "oom: 64.00 GiB more did not fit into the budget of"),
}


def test_every_status_is_told_in_pytests_words(tmp_path):
    scenario(tmp_path, FAULTS)
    done = child(tmp_path, "tiny.yaml", "-v", "-rsxfE", "-W", "error", "--attnbench-expect", "oom")
    assert done.returncode == 1
    for backend, (outcome, words) in ENDS.items():
        name = f"tiny.yaml::tiny[b1-n80-d32-h2-fp32-causal-forward-core-{backend}]"
        assert re.search(rf"^{re.escape(name)} {outcome}", done.stdout, re.MULTILINE), (
            name,
            done.stdout,
        )
        place = (
            rf"{outcome} \[1\] tiny\.yaml:1: "
            if outcome == "SKIPPED"
            else rf"{outcome} {re.escape(name)} - .*"
            if words
            else ""
        )
        assert re.search(rf"^{place}{re.escape(words)}", done.stdout, re.MULTILINE), (
            words,
            done.stdout,
        )
    assert "4 failed, 1 passed, 2 skipped, 1 xfailed" in done.stdout
    assert "Fatal Python error: Segmentation fault" in done.stdout  # of the worker's log
    assert not re.search(r"pytest_(items|runs|plugin)\.py", done.stdout)
    (run,) = runs(tmp_path)
    assert len(rows(run)) == 8


def test_the_first_failure_can_end_the_session_and_the_run_goes_on_later(tmp_path, attnbench):
    scenario(
        tmp_path,
        TINY.replace("[fused, sdpa]", "[crashes, fused]")
        .replace("baseline: fused\n", "")
        .replace("[16, 32]", "[16, 32, 64]"),
    )
    done = child(tmp_path, "tiny.yaml", "-x")
    assert done.returncode == 1
    assert "1 failed" in done.stdout
    (run,) = runs(tmp_path)
    found = rows(run)
    reached = {row["seq_len"]: row["status"] for row in found.values() if row["backend"] == "fused"}
    assert reached == {16: "ok", 32: "interrupted", 64: "interrupted"}
    assert found["crashes-b1-n16-d32-h2-fp32-forward-core"]["status"] == "crashed"
    reason = found["fused-b1-n64-d32-h2-fp32-forward-core"]["reason"]
    assert reason == "not reached: its test did not run; continue with attnbench run --resume"
    assert f"next: attnbench run --resume {run.relative_to(tmp_path)}" in done.stdout
    attnbench("run", "--resume", run, "--quiet")
    last = {
        row["case"]: row["status"]
        for row in map(json.loads, (run / "rows.jsonl").read_text().splitlines())
    }
    assert set(last.values()) == {"ok", "crashed"}


def test_a_session_without_benchmarks_checks_and_weighs_but_does_not_time(tmp_path):
    scenario(tmp_path, TINY.replace("[fused, sdpa]", "[fused, lies]").replace("[16, 32]", "80"))
    done = child(tmp_path, "tiny.yaml", "--benchmark-disable")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "incorrect: " in done.stdout
    (run,) = runs(tmp_path)
    fused = rows(run)["fused-b1-n80-d32-h2-fp32-forward-core"]
    assert (fused["status"], fused["block_ms"]) == ("ok", None)
    assert fused["peak_bytes"] == fused["predicted_peak_bytes"] > 0


def test_under_xdist_nothing_is_measured_and_it_is_said_why(tmp_path):
    pytest.importorskip("xdist")
    scenario(tmp_path)
    done = child(tmp_path, "tiny.yaml", "-n", "2")
    assert "4 skipped" in done.stdout
    assert "attnbench measures nothing under xdist: " in done.stdout
    assert "run scenarios with -n 0 (4 skipped)" in done.stdout
    assert not (tmp_path / "results").exists()


def test_a_busy_device_is_an_error_in_words_and_can_be_waited_for(tmp_path):
    scenario(tmp_path)
    with device_lock("cpu", wait=True, check=lambda: None):
        done = child(tmp_path, "tiny.yaml")
        waiting = start(tmp_path, "tiny.yaml", "--attnbench-wait")
        deadline = time.monotonic() + 60
        while not psutil.Process(waiting.pid).children() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        assert waiting.poll() is None
        assert not runs(tmp_path)
    assert done.returncode == 1
    assert "4 errors" in done.stdout
    wanted = (
        f"another run (process {os.getpid()}) is measuring on this cpu; wait for it to end, or add"
        " --attnbench-wait"
    )
    assert done.stdout.count(wanted) >= 4
    assert not NO_TRACE.search(done.stdout)
    output, _ = waiting.communicate(timeout=240)
    assert waiting.returncode == 0, output
    assert len(rows(*runs(tmp_path))) == 4


def test_a_folder_that_cannot_be_written_is_an_error_in_words(tmp_path):
    scenario(tmp_path)
    done = child(tmp_path, "tiny.yaml", "-k", "n16", "--attnbench-out", "tiny.yaml")
    assert "2 errors" in done.stdout
    assert "cannot make a run folder here" in done.stdout
    assert "choose another with --attnbench-out DIR" in done.stdout
    assert not NO_TRACE.search(done.stdout)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 2), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_a_signal_during_a_measurement_leaves_rows_and_no_process(
    tmp_path, monkeypatch, number, code
):
    monkeypatch.setenv("HANGS_IN", str(tmp_path / "hangs"))
    scenario(tmp_path, TINY.replace("[fused, sdpa]", "[fused, hangs]"))
    process = start(tmp_path, "tiny.yaml")
    deadline = time.monotonic() + 120
    while not (tmp_path / "hangs").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == code, output
    # SIGTERM ends pytest as it always does
    assert ("4 interrupted; next: attnbench run --resume" in output) is (number == signal.SIGINT)
    reasons = {row["reason"].partition(";")[0] for row in rows(*runs(tmp_path)).values()}
    assert reasons == {f"stopped by {number.name}", f"not reached: stopped by {number.name}"}
    assert workers
    assert not psutil.wait_procs(workers, timeout=60)[1]
    with device_lock("cpu", wait=False, check=lambda: None):
        pass


REORDER = (
    "def pytest_collection_modifyitems(items):\n    items[:] = [items[place] for place in"
    " {order}]\n"
)


def test_ctrl_c_in_another_test_is_that_tests_affair(tmp_path):
    scenario(tmp_path)
    (tmp_path / "test_stop.py").write_text(
        "import os, signal, time\ndef test_stop():\n    os.kill(os.getpid(), signal.SIGINT)\n   "
        " time.sleep(60)\n"
    )
    # a session in the background would ignore it
    handled = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    (tmp_path / "conftest.py").write_text(handled + REORDER.format(order=[0, 1, 4, 2, 3]))
    done = child(tmp_path, "tiny.yaml", "test_stop.py")
    assert done.returncode == 2, done.stdout
    assert "2 passed" in done.stdout
    statuses = {
        row["seq_len"]: (row["status"], row["reason"].partition(";")[0])
        for row in rows(*runs(tmp_path)).values()
    }
    assert statuses == {16: ("ok", ""), 32: ("interrupted", "not reached: its test did not run")}


def test_tests_of_two_files_may_come_mixed(tmp_path):
    for name in ("one", "two"):
        scenario(
            tmp_path,
            TINY.replace("[fused, sdpa]", "fused").replace("name: tiny", f"name: {name}"),
            f"{name}.yaml",
        )
    (tmp_path / "conftest.py").write_text(REORDER.format(order=[0, 2, 1, 3]))
    done = child(tmp_path, "one.yaml", "two.yaml")
    assert "4 passed" in done.stdout, done.stdout
    assert [{row["status"] for row in rows(run).values()} for run in runs(tmp_path)] == [
        {"ok"},
        {"ok"},
    ]


def test_tests_that_are_skipped_are_not_measured(tmp_path):
    scenario(tmp_path, TINY.replace("[16, 32]", "[16, 32, 64]"))
    (tmp_path / "conftest.py").write_text(
        "import pytest\ndef pytest_collection_modifyitems(items):\n    for item in items:\n       "
        " if 'sdpa' in item.name: item.add_marker(pytest.mark.skip(reason='not today'))\n        if"
        " 'n32' in item.name: item.add_marker(pytest.mark.skipif(True, reason='nor this'))\n"
    )
    done = child(tmp_path, "tiny.yaml")
    assert "2 passed, 4 skipped" in done.stdout, done.stdout
    found = {case: row["status"] for case, row in rows(*runs(tmp_path)).items()}
    assert {case.split("-")[2]: status for case, status in found.items()} == {
        "n16": "ok",
        "n32": "interrupted",
        "n64": "ok",
    }
    assert len(found) == 3


def test_a_time_limit_of_pytests_own_ends_the_run_in_order(tmp_path):
    scenario(tmp_path, TINY.replace("[fused, sdpa]", "[hangs, fused]"))
    (tmp_path / "conftest.py").write_text(
        "import pytest, signal\ndef late(number, frame): pytest.fail('too late')\ndef"
        " pytest_runtest_call(item):\n    signal.signal(signal.SIGALRM, late)\n   "
        " signal.alarm(5)\ndef pytest_runtest_teardown(item):\n    signal.alarm(0)\n"
    )
    done = child(tmp_path, "tiny.yaml")
    assert "2 failed, 2 errors" in done.stdout, done.stdout
    assert "its run ended early, by Failed" in done.stdout
    reasons = {row["reason"].partition(";")[0] for row in rows(*runs(tmp_path)).values()}
    assert reasons == {"pytest ended it by Failed", "not reached: pytest ended it by Failed"}
