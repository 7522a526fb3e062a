"""Scenarios measured by pytest: the same rows as the command line's, each status in pytest's words,
and an orderly end.
"""

import os
import re
import signal
import subprocess
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from attnbench.harness.process.device_lock import device_lock
from tests.conftest import ROOT, wait_for
from tests.harness.pytest_plugin.child_pytest import TINY, child, rows, runs, scenario, start

pytestmark = pytest.mark.nightly

NO_TRACE = re.compile(r"Traceback|^E  |\.py:\d+", re.MULTILINE)


class Twice(NamedTuple):
    """A folder in which pytest has measured a scenario twice, the second time compared with the
    first by pytest-benchmark and by attnbench.
    """

    folder: Path
    first: subprocess.CompletedProcess[str]
    second: subprocess.CompletedProcess[str]
    runs: list[Path]


@pytest.fixture(scope="module")
def twice(tmp_path_factory) -> Twice:
    folder = tmp_path_factory.mktemp("twice")
    scenario(folder)
    saved = ("--benchmark-autosave", "--benchmark-json=first.json")
    first = child(folder, "tiny.yaml", "--benchmark-only", *saved)
    two_processes = ("--attnbench-set", "plan.processes=2", "--benchmark-json=second.json")
    gate = ("--attnbench-fail-slower", "5%", "--attnbench-against", "latest")
    second = child(
        folder, "tiny.yaml", "--benchmark-only", "--benchmark-compare", *two_processes, *gate
    )
    return Twice(folder, first, second, runs(folder))


def test_every_case_passes_and_the_tables_have_all_backends(twice):
    assert twice.first.returncode == 0, twice.first.stdout
    said = twice.first.stdout
    assert "4 passed" in said
    for length in (16, 32):
        shape = f"b1-n{length}-d32-h2-fp32-forward-core"
        assert f"benchmark 'tiny {shape}': 2 tests" in said
        for backend in ("fused", "sdpa"):
            assert re.search(rf"^tiny\[{shape}-{backend}\] +\d", said, re.MULTILINE)


def test_a_session_whose_gate_decides_nothing_has_passed_tests_and_exit_code_6(twice):
    assert twice.second.returncode == 6, twice.second.stdout + twice.second.stderr
    said = twice.second.stdout
    assert "4 passed" in said
    assert "Gate latency 5 %: latency: nothing decided (0 of 4: " in said
    first, second = (f"results/{path.name}" for path in twice.runs[:2])
    assert f"every case: attnbench compare {first} {second}" in said


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
    "hangs": ("FAILED", "timeout: one step took more than 5 s; raise the limit with --timeout"),
    "runs_out_of_memory": ("XFAIL", "oom: 64.00 GiB more did not fit into the budget of"),
}


def test_every_status_is_told_in_pytests_words(tmp_path):
    scenario(tmp_path, FAULTS)
    done = child(tmp_path, "tiny.yaml", "-v", "-rsxfE", "-W", "error", "--attnbench-expect", "oom")
    assert done.returncode == 1
    for backend, (outcome, words) in ENDS.items():
        name = f"tiny.yaml::tiny[b1-n80-d32-h2-fp32-causal-forward-core-{backend}]"
        place = rf"{outcome} {re.escape(name)} - .*" if words else ""
        if outcome == "SKIPPED":
            place = r"SKIPPED \[1\] tiny\.yaml:1: "
        for wanted in (f"{re.escape(name)} {outcome}", f"{place}{re.escape(words)}"):
            assert re.search(f"^{wanted}", done.stdout, re.MULTILINE), (wanted, done.stdout)
    assert "4 failed, 1 passed, 2 skipped, 1 xfailed" in done.stdout
    assert "Fatal Python error: Segmentation fault" in done.stdout  # of the worker's log
    assert not re.search(r"pytest_plugin/\w+\.py", done.stdout)
    (run,) = runs(tmp_path)
    assert len(rows(run)) == 8


@pytest.mark.parametrize(
    "arguments", [("-n", "2"), ("-n", "2", "--dist", "loadfile"), ("--benchmark-disable",)]
)
def test_where_nothing_is_timed_every_case_is_an_error_that_says_why(tmp_path, arguments):
    pytest.importorskip("xdist")
    scenario(tmp_path)
    done = child(tmp_path, "tiny.yaml", *arguments)
    assert done.returncode == 1
    assert "4 errors" in done.stdout
    assert "nothing is timed, because xdist or --benchmark-disable switches" in done.stdout
    assert not (tmp_path / "results").exists()


def test_results_and_memory_are_checked_without_timing_where_that_is_asked_for(tmp_path):
    scenario(tmp_path)
    memory = ("--benchmark-disable", "--attnbench-measure", "memory")
    done = child(tmp_path, "tiny.yaml", *memory, "-k", "n16-d32")
    assert (done.returncode, "2 passed" in done.stdout) == (0, True), done.stdout
    (run,) = runs(tmp_path)
    for row in rows(run).values():  # two: what is not selected is not measured
        assert (row["status"], row["block_ms"]) == ("ok", None)
        assert row["peak_bytes"] is not None


def test_the_functions_of_readme_and_docs_are_measured_once_their_import_is_allowed(tmp_path):
    (function,) = re.findall(
        r"```python\n(# mha\.py\n.+?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    text = (ROOT / "docs" / "ci.md").read_text()
    (block,) = re.findall(
        r"^    # bench\.scenario\.yaml.+?(?=\n\n)", text, re.DOTALL | re.MULTILINE
    )
    scenario(tmp_path, function, "src/mha.py")
    scenario(tmp_path, textwrap.dedent(block), "bench.scenario.yaml")
    small = ("--attnbench-set", "grid.seq_len=[16,32]", "--attnbench-set", "grid.d_model=32")
    small += ("--attnbench-set", "plan={processes: 1, min_blocks: 2, max_blocks: 2}")
    refused = child(tmp_path, "bench.scenario.yaml", *small)
    assert refused.returncode == 1
    assert "workers must import and run mha; add --attnbench-allow-import if you" in refused.stdout
    assert not runs(tmp_path)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\npythonpath = src\nattnbench_allow_import = true\n"
    )
    done = child(tmp_path, *small, "--benchmark-only", "--attnbench-device", "cpu")
    assert (done.returncode, "4 passed" in done.stdout) == (0, True), done.stdout
    (run,) = runs(tmp_path)
    assert {row["status"] for row in rows(run).values()} == {"ok"}
    assert {row["backend"] for row in rows(run).values()} == {"attend@mha", "sdpa"}


def test_a_busy_device_is_an_error_in_words_and_can_be_waited_for(tmp_path):
    scenario(tmp_path)
    with device_lock("cpu", wait=True, check=lambda: None):
        done = child(tmp_path, "tiny.yaml")
        waiting = start(tmp_path, "tiny.yaml", "-k", "n16-d32-h2 and sdpa", "--attnbench-wait")
        wait_for(psutil.Process(waiting.pid).children)
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
    assert "1 passed" in output


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 2), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_a_signal_during_a_measurement_leaves_rows_and_no_process(
    tmp_path, monkeypatch, number, code
):
    monkeypatch.setenv("HANGS_IN", str(tmp_path / "hangs"))
    scenario(tmp_path, TINY.replace("[fused, sdpa]", "[fused, hangs]"))
    process = start(tmp_path, "tiny.yaml")
    wait_for((tmp_path / "hangs").exists)
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
