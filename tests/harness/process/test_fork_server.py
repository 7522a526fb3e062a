"""Forks of a server compute as what is started by exec does, and all of them end with the run."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from attnbench.harness.process.fork_server import ForkServer
from attnbench.harness.process.worker_process import WorkerFailure, WorkerProcess
from attnbench.harness.rows.record import Status
from tests.conftest import ROOT, wait_for
from tests.harness.process.talking_child import REPLIES
from tests.search_path import searched

pytestmark = pytest.mark.long

PROGRAM = "tests.harness.process.talking_child"
PATIENCE_S = 60.0
TIMES = 5  # as often forks of a torch with two threads were tried: all hung


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkServer]:
    monkeypatch.setenv("PYTHONPATH", searched(ROOT))
    server = ForkServer(PROGRAM)
    yield server
    server.close()


def forked(server: ForkServer, program: str = PROGRAM) -> WorkerProcess:
    child = WorkerProcess(program, server=server, replies=REPLIES)
    child.wait_ready(PATIENCE_S)
    return child


def server_of(child: WorkerProcess) -> psutil.Process:
    return psutil.Process(psutil.Process(child.pid).parent().ppid())


def test_forks_compute_with_all_threads_and_end_by_themselves(server: ForkServer) -> None:
    threads = max(2, os.cpu_count() or 1)
    for _ in range(TIMES):
        child = forked(server)
        assert child.ask("compute", PATIENCE_S, threads=threads).value == 1000.0**3
        child.end_requests()
        assert child.wait(PATIENCE_S) == 0
        child.kill()


def test_several_forks_live_side_by_side_and_end_with_their_server(server: ForkServer) -> None:
    before = psutil.Process().children(recursive=True)  # such as another test's browser
    children = [forked(server) for _ in range(3)]
    assert len({server_of(child) for child in children}) == 1
    for number, child in enumerate(children):
        assert child.ask("echo", PATIENCE_S, value=number).value == number
    everything = set(psutil.Process().children(recursive=True)) - set(before)
    server.close()
    for child in children:
        child.kill()
    assert not psutil.wait_procs(everything, PATIENCE_S)[1]


def test_a_fork_has_the_environment_of_the_moment(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    forked(server).kill()
    monkeypatch.setenv("ATTNBENCH_WORD", "new")
    child = forked(server)
    assert child.ask("environment", PATIENCE_S, name="ATTNBENCH_WORD").value == "new"
    assert child.ask("environment", PATIENCE_S, name="CUDA_VISIBLE_DEVICES").value is None
    child.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_is_killed_takes_its_forks_along_and_the_next_start_makes_another(
    server: ForkServer, number: int
) -> None:
    child = forked(server)
    first = server_of(child)
    first.send_signal(number)
    with pytest.raises(WorkerFailure, match="lost its fork server: SIG") as failure:
        child.ask("sleep", PATIENCE_S)
    assert failure.value.status is Status.ERROR
    assert not psutil.pid_exists(child.pid)
    child.kill()
    child = forked(server)
    assert server_of(child) != first
    child.kill()


def test_a_server_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkerFailure, match="fork server ended with exit code 1") as failure:
        forked(ForkServer("no_such_program"))
    assert "No module named 'no_such_program'" in (failure.value.log_tail or "")


def test_a_thread_that_forks_would_lack_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading, time\n"
        "warm = threading.Thread(target=time.sleep, args=(600,), daemon=True).start\n"
    )
    monkeypatch.setenv("PYTHONPATH", searched(tmp_path))
    with pytest.raises(WorkerFailure, match="lost its fork server") as failure:
        forked(ForkServer("threaded"))
    assert "threaded.warm has started a thread" in (failure.value.log_tail or "")


def test_a_server_that_hangs_is_replaced(server: ForkServer) -> None:
    child = forked(server)
    server_of(child).suspend()
    waiting = WorkerProcess(PROGRAM, server=server, replies=REPLIES)
    with pytest.raises(WorkerFailure, match=r"still running after its 0\.5 s"):
        waiting.wait_ready(0.5)
    forked(server).kill()
    child.kill()


def test_a_fork_that_nobody_waits_for_ends_as_it_begins(server: ForkServer) -> None:
    WorkerProcess(PROGRAM, server=server, replies=REPLIES).kill()  # torch is being imported
    child = forked(server)
    parent = server_of(child)
    wait_for(lambda: len(alive_below(parent)) == 2)  # the child and its guard
    child.kill()


def alive_below(server: psutil.Process) -> list[psutil.Process]:
    """Without those that have ended and are reaped later."""
    below = server.children(recursive=True)
    return [one for one in below if one.status() != psutil.STATUS_ZOMBIE]
