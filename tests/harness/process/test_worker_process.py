"""Both ends of a child process: requests with deadlines, how it died, and nothing left behind."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from attnbench.harness.process.worker_process import (
    TOKEN_VARIABLE,
    WorkerFailure,
    WorkerProcess,
    child_environment,
)
from attnbench.harness.rows.record import Status
from tests.conftest import ROOT, environment
from tests.search_path import searched

PROGRAM = "tests.harness.process.talking_child"
PATIENCE_S = 60.0  # for what takes milliseconds, unless the machine is busy


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child's program is a module of the tests."""
    monkeypatch.setenv("PYTHONPATH", searched(ROOT))


@pytest.fixture
def child() -> Iterator[WorkerProcess]:
    process = WorkerProcess(PROGRAM, "a", "b")
    process.wait_ready(60)
    yield process
    process.kill(term_s=0)


def test_the_first_event_is_kept_and_requests_are_answered_in_order(child: WorkerProcess) -> None:
    assert child.ready == {"event": "ready", "arguments": ["a", "b"]}
    for number in range(3):
        answer = child.ask({"op": "echo", "what": number}, "echoed", PATIENCE_S)
        assert answer == {"what": number}


def test_an_answer_to_another_question_is_a_failure(child: WorkerProcess) -> None:
    with pytest.raises(WorkerFailure, match="does not answer echo"):
        child.ask({"op": "echo", "what": 1}, "predicted", PATIENCE_S)


def test_a_child_that_takes_too_long_is_a_timeout(child: WorkerProcess) -> None:
    child.send({"op": "sleep"})
    with pytest.raises(WorkerFailure, match=r"still running after its 0\.2 s") as failure:
        child.receive(0.2)
    assert failure.value.status is Status.TIMEOUT


@pytest.mark.long
def test_a_child_that_reads_nothing_does_not_stop_the_parent(child: WorkerProcess) -> None:
    child.send({"op": "stop"})
    with pytest.raises(WorkerFailure, match="the worker reads no requests") as failure:
        child.send({"op": "echo", "what": "x" * (1 << 20)}, timeout_s=0.2)
    assert failure.value.status is Status.TIMEOUT


def test_the_signal_that_killed_a_child_is_named_and_its_last_words_are_kept(
    child: WorkerProcess,
) -> None:
    child.send({"op": "abort"})
    with pytest.raises(WorkerFailure, match="SIGABRT") as failure:
        child.receive(PATIENCE_S)
    assert failure.value.status is Status.CRASHED
    assert "dying" in (child.log_tail() or "")
    assert child.exit_code == -6


def test_a_line_that_is_not_an_event_is_a_failure(child: WorkerProcess) -> None:
    child.send({"op": "babble"})
    with pytest.raises(WorkerFailure, match="bad reply: b'nonsense' is not an event"):
        child.receive(PATIENCE_S)


def test_a_child_that_dies_before_it_is_ready_says_why() -> None:
    process = WorkerProcess(PROGRAM, "dies at once", name="compiler")
    with pytest.raises(WorkerFailure, match="the compiler ended with exit code 3") as failure:
        process.wait_ready(60)
    assert failure.value.log_tail == "last words\n"


def escaped_of(child: WorkerProcess) -> psutil.Process:
    escaped = psutil.Process(child.ask({"op": "escape"}, "escaped", PATIENCE_S)["pid"])
    assert TOKEN_VARIABLE not in escaped.environ()
    assert os.getsid(escaped.pid) == escaped.pid
    assert child.pid not in [parent.pid for parent in escaped.parents()]
    return escaped


@pytest.mark.long
def test_killing_a_child_ends_what_has_dropped_session_parent_and_environment(
    child: WorkerProcess,
) -> None:
    escaped = escaped_of(child)
    child.kill()
    escaped.wait(PATIENCE_S)
    assert not psutil.pid_exists(child.pid)
    child.kill()  # twice is safe


@pytest.mark.parametrize("request_", [{"op": "end"}, {"op": "die", "signal": signal.SIGKILL}])
def test_a_child_that_ends_takes_along_what_it_has_started(
    child: WorkerProcess, request_: dict[str, object]
) -> None:
    escaped = escaped_of(child)
    child.send(request_)
    with pytest.raises(WorkerFailure):
        child.receive(PATIENCE_S)
    escaped.wait(PATIENCE_S)


PARENT = """
import sys, time
from attnbench.harness.process.worker_process import WorkerProcess
child = WorkerProcess("tests.harness.process.talking_child")
child.wait_ready(60)
print(child.pid, child.ask({"op": "escape"}, "escaped", 60)["pid"], flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("stopped", [False, True])
def test_nothing_is_left_after_the_parent_was_killed(stopped: bool) -> None:
    env = environment({"PYTHONPATH": f"{ROOT / '.package'}{os.pathsep}{ROOT}"})
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as parent:
        left = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        left += psutil.Process(parent.pid).children(recursive=True)
        for process in left if stopped else ():
            process.suspend()
        parent.kill()
    gone, alive = psutil.wait_procs(left, PATIENCE_S)
    assert gone
    assert not alive


@pytest.mark.long
def test_a_child_whose_parent_died_while_it_started_ends_at_once() -> None:
    """Its parent is another process than the one that gave its number."""
    request_read, request_write = os.pipe()
    event_read, event_write = os.pipe()
    fds = request_read, event_write
    ours = subprocess.Popen(["true"])
    ours.wait()
    numbers = map(str, (*fds, ours.pid))
    child = subprocess.Popen(
        [sys.executable, "-m", PROGRAM, *numbers], pass_fds=fds, env=child_environment()
    )
    try:
        assert child.wait(60) == 1
    finally:
        child.kill()
        for fd in (*fds, request_write):
            os.close(fd)
    assert os.read(event_read, 100) == b""
    os.close(event_read)


def test_a_child_whose_requests_end_ends_by_itself(child: WorkerProcess) -> None:
    child.close()
    assert child.exit_code == 0


@pytest.mark.parametrize("descriptors", range(8))
def test_a_machine_that_refuses_a_process_is_a_failure_and_no_descriptor_stays_open(
    descriptors: int,
) -> None:
    """Whichever of the pipes, the null device or the child's own pipe is the one too many."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    this = psutil.Process()
    before = this.num_fds()
    os.close(free := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + descriptors, limits[1]))
    try:
        with pytest.raises(WorkerFailure, match="refused a process: Too many open files"):
            WorkerProcess(PROGRAM)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert this.num_fds() == before
