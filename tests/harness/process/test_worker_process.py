"""Both ends of a child process: requests with deadlines, how it died, and nothing left behind; of
children that are started by exec and of forks of a server.
"""

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from attnbench.harness.devices.host import RUN
from attnbench.harness.process.child import CaseEnded
from attnbench.harness.process.fork_server import ForkServer
from attnbench.harness.process.worker_process import (
    Interrupted,
    WorkerFailure,
    WorkerProcess,
    child_environment,
)
from attnbench.harness.rows.record import Status
from tests.conftest import ROOT, environment
from tests.harness.process.talking_child import REPLIES
from tests.search_path import searched

PROGRAM = "tests.harness.process.talking_child"
PATIENCE_S = 60.0  # for what takes milliseconds, unless the machine is busy


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    """The child's program is a module of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", searched(ROOT))
        yield


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer(PROGRAM)
    yield server
    server.close()


@pytest.fixture(params=["exec", "fork"])
def server(request: pytest.FixtureRequest, fork_server: ForkServer) -> ForkServer | None:
    return fork_server if request.param == "fork" else None


def started(server: ForkServer | None, *arguments: str, **how: Any) -> WorkerProcess:
    return WorkerProcess(PROGRAM, *arguments, server=server, replies=REPLIES, **how)


@pytest.fixture
def child(server: ForkServer | None) -> Iterator[WorkerProcess]:
    process = started(server, "a", "b")
    process.wait_ready(60)
    yield process
    process.kill(term_s=0)


def test_the_first_reply_is_kept_and_requests_are_answered_in_order(child: WorkerProcess) -> None:
    assert child.ready.value == ["a", "b"]
    for number in range(3):
        assert child.ask("echo", PATIENCE_S, value=number).value == number


def test_a_case_that_goes_no_further_is_told_and_the_child_lives(child: WorkerProcess) -> None:
    with pytest.raises(CaseEnded, match="too large") as ended:
        child.ask("too large", PATIENCE_S)
    assert ended.value.status is Status.OOM
    assert ended.value.phase == "memory"
    assert child.ask("echo", PATIENCE_S, value=1).value == 1


def test_a_child_that_takes_too_long_is_a_timeout(child: WorkerProcess) -> None:
    with pytest.raises(WorkerFailure, match=r"still running after its 0\.2 s") as failure:
        child.ask("sleep", 0.2)
    assert failure.value.status is Status.TIMEOUT


def test_a_signal_interrupts_a_wait(server: ForkServer | None) -> None:
    ours, its = socket.socketpair()
    with ours, its:
        child = started(server, wake_fd=ours.fileno())
        try:
            child.wait_ready(60)
            child.send("sleep")
            its.send(b"x")
            with pytest.raises(Interrupted):
                child.receive("sleep", PATIENCE_S)
        finally:
            child.kill(term_s=0)


@pytest.mark.long
def test_a_child_that_reads_nothing_does_not_stop_the_parent(child: WorkerProcess) -> None:
    child.send("stop")
    with pytest.raises(WorkerFailure, match="the worker reads no requests") as failure:
        child.send("echo", timeout_s=0.2, value="x" * (1 << 20))
    assert failure.value.status is Status.TIMEOUT


def test_the_signal_that_killed_a_child_is_named_and_its_last_words_are_kept(
    child: WorkerProcess,
) -> None:
    with pytest.raises(WorkerFailure, match="SIGABRT") as failure:
        child.ask("abort", PATIENCE_S)
    assert failure.value.status is Status.CRASHED
    assert "dying" in (child.log.tail() or "")
    assert child.exit_code == -6


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense\n", "bad reply: b'nonsense' is not a reply"),
        ('{"op": "echo", "value": 1}\n', "bad reply: echo does not answer babble"),
        ('{"op": "sing"}\n', "bad reply: op .sing. is not one of ready, echo"),
        ("x" * (17 << 20), "bad reply: more than 16777216 bytes"),
    ],
    ids=str.split,
)
def test_a_line_that_is_no_answer_is_a_failure(child: WorkerProcess, line: str, said: str) -> None:
    with pytest.raises(WorkerFailure, match=said):
        child.ask("babble", PATIENCE_S, line=line)


def test_a_reply_before_its_request_is_a_failure(child: WorkerProcess) -> None:
    """A backend that writes where replies go answers nothing that is asked later."""
    reply = '{"op": "echo", "value": 1}\n'
    with pytest.raises(WorkerFailure, match="does not answer babble"):
        child.ask("babble", PATIENCE_S, line=reply + reply)
    with pytest.raises(WorkerFailure, match="answers no request"):
        child.ask("echo", PATIENCE_S, value=2)


def test_a_child_that_dies_before_it_is_ready_says_why(server: ForkServer | None) -> None:
    process = started(server, "dies at once", name="compiler")
    with pytest.raises(WorkerFailure, match="the compiler ended with exit code 3") as failure:
        process.wait_ready(60)
    assert failure.value.log_tail == "last words\n"


def escaped_of(child: WorkerProcess) -> psutil.Process:
    escaped = psutil.Process(child.ask("escape", PATIENCE_S).value)
    assert RUN not in escaped.environ()
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


@pytest.mark.parametrize("request_", [("end", {}), ("die", {"signal": signal.SIGKILL})])
def test_a_child_that_ends_takes_along_what_it_has_started(
    child: WorkerProcess, request_: tuple[str, dict[str, Any]]
) -> None:
    escaped = escaped_of(child)
    with pytest.raises(WorkerFailure):
        child.ask(request_[0], PATIENCE_S, **request_[1])
    escaped.wait(PATIENCE_S)


def test_a_child_that_has_lost_its_guard_ends_with_what_it_has_started(
    child: WorkerProcess,
) -> None:
    guard = psutil.Process(child.pid).ppid()
    started = psutil.Process(child.ask("start", PATIENCE_S).value)
    with pytest.raises(WorkerFailure, match="SIGKILL"):
        child.ask("kill", PATIENCE_S, pid=guard)
    assert child.exit_code == -signal.SIGKILL
    psutil.wait_procs([psutil.Process(child.pid)] if psutil.pid_exists(child.pid) else [], 5)
    assert not psutil.pid_exists(child.pid)
    child.kill()
    started.wait(PATIENCE_S)


def test_a_child_knows_the_processes_of_its_run(child: WorkerProcess) -> None:
    assert {os.getpid(), child.pid} <= set(child.ask("own_run", PATIENCE_S).value)


PARENT = """
import sys, time
from attnbench.harness.devices.host import RUN
from attnbench.harness.process.child import CaseEnded
from attnbench.harness.process.fork_server import ForkServer
from attnbench.harness.process.worker_process import WorkerProcess
from tests.harness.process.talking_child import REPLIES
PROGRAM = "tests.harness.process.talking_child"
server = ForkServer(PROGRAM) if sys.argv[1] == "fork" else None
child = WorkerProcess(PROGRAM, server=server, replies=REPLIES)
child.wait_ready(60)
print(child.pid, child.ask("escape", 60).value, flush=True)
time.sleep(600)
"""


@pytest.mark.long
@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("way", ["exec", "fork"])
def test_nothing_is_left_after_the_parent_was_killed(way: str, stopped: bool) -> None:
    env = environment({"PYTHONPATH": f"{ROOT / '.package'}{os.pathsep}{ROOT}"})
    command = [sys.executable, "-c", PARENT, way]
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
    ours, line = socket.socketpair()
    status_read, status_write = os.pipe()
    fds = line.fileno(), status_write
    dead = subprocess.Popen(["true"])
    dead.wait()
    numbers = map(str, (*fds, dead.pid))
    child = subprocess.Popen(
        [sys.executable, "-m", PROGRAM, *numbers], pass_fds=fds, env=child_environment()
    )
    try:
        assert child.wait(60) == 1
    finally:
        child.kill()
        line.close()
        os.close(status_write)
    assert ours.recv(100) == os.read(status_read, 100) == b""
    ours.close()
    os.close(status_read)


def test_a_child_whose_requests_end_ends_by_itself(child: WorkerProcess) -> None:
    child.end_requests()
    assert child.wait(PATIENCE_S) == 0
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
