"""Threads and processes that a case has started and that go on working are found."""

import subprocess
import sys
import threading
import time

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.measure import left_running
from attnbench.harness.measure.left_running import LeftRunning
from attnbench.impls.problem import Problem

PROBLEM = Problem(batch=1, seq_len=8, d_model=8, heads=1)
HONEST, CHEAT, LATER, POOL, SPINS = (
    Case(backend=name, problem=PROBLEM) for name in ("honest", "cheat", "later", "pool", "spins")
)


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(left_running, "THREAD_REST_S", 0.2)
    monkeypatch.setattr(left_running, "PROCESS_REST_S", 0.2)
    monkeypatch.setattr(left_running, "WORKING_SHARE", 0.03)  # other tests share the cores


@pytest.fixture
def thread():
    """Starts threads that call a function again and again, until the test is over."""
    over = threading.Event()

    def start(work):
        def run():
            while not over.is_set():
                work()

        one = threading.Thread(target=run, daemon=True)
        one.start()
        threads.append(one)

    threads = []
    yield start
    over.set()
    for one in threads:
        one.join()


def test_a_thread_that_works_on_is_told_of_the_case_that_started_it(thread):
    left = LeftRunning()
    left.note(HONEST)
    thread(lambda: None)
    left.note(CHEAT)
    left.note(LATER)
    assert left.working(CHEAT).startswith("a thread that it started still works 0.")
    assert left.working(HONEST) == left.working(LATER) == ""


def test_threads_that_wait_or_were_there_before_may_stay(thread):
    thread(lambda: None)
    left = LeftRunning()
    thread(lambda: time.sleep(0.02))
    left.note(POOL)
    assert left.working(POOL) == ""


def test_a_thread_that_comes_to_rest_in_time_is_waited_for(thread):
    left = LeftRunning()
    until_s = time.monotonic() + 0.1
    thread(lambda: time.sleep(0.05) if time.monotonic() > until_s else None)
    left.note(SPINS)
    assert left.working(SPINS) == ""


def test_a_process_that_works_on_is_told():
    left = LeftRunning()
    spins = [sys.executable, "-uc", "print()\nwhile True: pass"]
    with subprocess.Popen(spins, stdout=subprocess.PIPE) as process:
        process.stdout.read(1)
        left.note(CHEAT)
        found = left.working(CHEAT)
        process.kill()
    assert found.startswith("a process that it started")


def test_what_works_on_after_the_group_belongs_to_nobody(thread):
    left = LeftRunning()
    thread(lambda: None)
    left.note(CHEAT)
    assert [case.id for case in left.owners] == [CHEAT.id]
    left.forget()
    assert left.owners == []
    assert left.working(CHEAT) == ""
